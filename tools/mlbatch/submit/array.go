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
	// AtATime is how many run at the same time, and have quota. If it is 0, each number has an AppWrapper of its own.
	AtATime int64
	// Of is the name of the array to which a single number belongs that has an AppWrapper of its own.
	Of string `json:",omitempty"`
}

// ArrayLabel is a label of AppWrappers that have one number of an array each. Its value is the name of the array.
const ArrayLabel = "mlbatch.dev/array"

const (
	// mostIndexes is fewer than an Indexed Job may have, and more than a person looks through.
	mostIndexes = 10_000
	// mostApart is how many AppWrappers an array may become.
	mostApart = 100
	// retriesOfIndex is how often a number that has failed is tried again, alone.
	retriesOfIndex = 2
)

var ofArray = regexp.MustCompile(`^([0-9]{1,9})-([0-9]{1,9})(?:%([0-9]{1,9}))?$`)

// ParseArray reads a text such as 0-19 or 0-19%4.
func ParseArray(text string) (*Array, error) {
	found := ofArray.FindStringSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("cannot read --array %s: write FIRST-LAST, or FIRST-LAST%%N, such as 0-19%%4, of which N run at the same time", text)
	}
	var number [4]int64
	for i := 1; i < len(number); i++ {
		number[i], _ = strconv.ParseInt(found[i], 10, 64) // it has at most nine digits
	}
	a := &Array{First: number[1], Last: number[2], AtATime: number[3]}
	switch {
	case a.Last < a.First:
		return nil, fmt.Errorf("--array %s ends before it begins: write the smaller number first", text)
	case found[3] != "" && a.AtATime == 0:
		return nil, fmt.Errorf("--array %s runs none at a time: write how many after %%, such as 0-19%%4", text)
	case a.count() > mostIndexes:
		return nil, fmt.Errorf("--array %s has %d numbers, and an array has at most %d: submit several", text, a.count(), mostIndexes)
	case a.apart() && a.count() > mostApart:
		return nil, fmt.Errorf("--array %s has %d numbers, and at most %d can have an AppWrapper each: write %s%%N, of which N run at the same time", text, a.count(), mostApart, text)
	}
	return a, nil
}

// apart reports whether each number has an AppWrapper of its own.
func (a Array) apart() bool { return a.AtATime == 0 }

func (a Array) count() int64 { return a.Last - a.First + 1 }

// fits returns an error if settings do not describe a job of one pod.
func (a Array) fits(settings map[string]any) error {
	if pods := amount(settings, "numPods", 1); pods != 1 {
		return fmt.Errorf("each number of an array with %% has one pod, and not %d: remove numPods, or %%%d", pods, a.AtATime)
	}
	return nil
}

// environment are shell commands that say which number this is, and set what a PyTorchJob would.
func (a Array) environment() []any {
	if a.apart() {
		return []any{fmt.Sprintf("export MLBATCH_ARRAY_INDEX=%d", a.First)}
	}
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

// Jobs renders the job of the program, or one for each number of an array whose numbers are apart: NAME-0, NAME-1, and
// so on.
func (p Program) Jobs(version string, settings map[string]any) (jobs []Job, err error) {
	if p.Array == nil || !p.Array.apart() {
		one, err := p.Job(version, settings)
		return []Job{one}, err
	}
	all := named(settings, p.name())
	name, is := all["jobName"].(string)
	if !is || name == "" {
		_, err := New(version, all) // in words about the user's own name
		return nil, err
	}
	for number := p.Array.First; number <= p.Array.Last; number++ {
		one := p
		one.Array = &Array{First: number, Last: number, Of: name}
		all["jobName"] = fmt.Sprintf("%s-%d", name, number)
		job, err := one.Job(version, all)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// Array is the name of the array to which the job belongs, or empty.
func (j Job) Array() string {
	if j.parts.array == nil {
		return ""
	}
	return j.parts.array.Of
}

// RankOf is the rank of the pod that has a number of an array, of which an AppWrapper has all numbers.
func RankOf(aw *v1beta2.AppWrapper, number int64) (int, error) {
	var r recipe
	if err := json.Unmarshal([]byte(aw.Annotations[RecipeAnnotation]), &r); err != nil || r.Array == nil {
		return 0, fmt.Errorf("AppWrapper %s is no array of 'mlbatch submit --array': use --rank", aw.Name)
	}
	if number < r.Array.First || number > r.Array.Last {
		return 0, fmt.Errorf("the array %s has no number %d: it has %d to %d", aw.Name, number, r.Array.First, r.Array.Last)
	}
	return int(number - r.Array.First), nil
}
