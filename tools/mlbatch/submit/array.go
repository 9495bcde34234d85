// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Array is a range of numbers. The program runs once with each of them.
type Array struct {
	First, Last int64
	// AtATime is how many run at the same time, and have quota.
	AtATime int64
}

const (
	// mostIndexes is fewer than an Indexed Job may have, and more than a person looks through.
	mostIndexes = 10_000
	// retriesOfIndex is how often a number that has failed is tried again, alone.
	retriesOfIndex = 2
)

var ofArray = regexp.MustCompile(`^([0-9]{1,9})-([0-9]{1,9})%([0-9]{1,9})$`)

// ParseArray reads a text such as 0-19%4.
func ParseArray(text string) (*Array, error) {
	found := ofArray.FindStringSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("cannot read --array %s: write FIRST-LAST%%N, such as 0-19%%4, of which N run at the same time", text)
	}
	var number [4]int64
	for i := 1; i < len(number); i++ {
		number[i], _ = strconv.ParseInt(found[i], 10, 64) // it has at most nine digits
	}
	a := &Array{First: number[1], Last: number[2], AtATime: number[3]}
	switch {
	case a.Last < a.First:
		return nil, fmt.Errorf("--array %s ends before it begins: write FIRST-LAST%%N, such as 0-19%%4", text)
	case a.AtATime == 0:
		return nil, fmt.Errorf("--array %s runs none at a time: write how many after %%, such as 0-19%%4", text)
	case a.count() > mostIndexes:
		return nil, fmt.Errorf("--array %s has %d numbers, and an array has at most %d: submit several", text, a.count(), mostIndexes)
	}
	return a, nil
}

func (a Array) count() int64 { return a.Last - a.First + 1 }

// fits returns an error if settings do not describe a job of one pod.
func (a Array) fits(settings map[string]any) error {
	if pods := amount(settings, "numPods", 1); pods != 1 {
		return fmt.Errorf("each number of an array has one pod, and not %d: remove numPods", pods)
	}
	return nil
}

// environment are shell commands that say which number this is, and set what a PyTorchJob would.
func (a Array) environment() []any {
	return []any{
		fmt.Sprintf("export MLBATCH_ARRAY_INDEX=$((JOB_COMPLETION_INDEX + %d))", a.First),
		"export RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500",
	}
}

// job replaces the PyTorchJob of an AppWrapper by an Indexed Job with the same pods.
func (a Array) job(aw *v1beta2.AppWrapper) error {
	var one struct {
		Metadata map[string]any `json:"metadata"`
		Spec     struct {
			Replicas struct {
				Master struct {
					Template map[string]any `json:"template"`
				} `json:"Master"`
			} `json:"pytorchReplicaSpecs"`
		} `json:"spec"`
	}
	component := &aw.Spec.Components[len(aw.Spec.Components)-1]
	if err := json.Unmarshal(component.Template.Raw, &one); err != nil {
		return fmt.Errorf("cannot read the rendered job: %w", err)
	}
	template := one.Spec.Replicas.Master.Template
	pod, ok := template["spec"].(map[string]any)
	if !ok {
		return fmt.Errorf("cannot read the rendered job: its pods have no spec")
	}
	pod["restartPolicy"] = "Never"
	raw, err := json.Marshal(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": one.Metadata, "spec": map[string]any{
		"completionMode": "Indexed", "completions": a.count(), "parallelism": min(a.AtATime, a.count()),
		"backoffLimitPerIndex": retriesOfIndex, "podReplacementPolicy": "Failed", "template": template,
	}})
	component.Template.Raw = raw
	return err
}
