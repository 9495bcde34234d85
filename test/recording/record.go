// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

var folder = flag.String("scenes.folder", "", "write the scenes of mlbatch why that the test makes into this folder")

// Head is how the first line of a file begins that was recorded.
const Head = "# Recorded: "

// Stage is where scenes play.
type Stage struct {
	Client client.Client
	// On is the sort of the cluster: "a simulated cluster".
	On string
}

// noWorkload is said of all work until Kueue has seen it. A scene begins after that.
const noWorkload = explain.Code("NoWorkload")

// Names judges some work as it would be judged later. If the code is among the causes, it keeps the scene, if the flag
// says where; else it says what mlbatch why says.
func (s Stage) Names(ctx context.Context, code explain.Code, target why.Target, later time.Duration) error {
	now := time.Now().Add(later)
	o, err := why.ReadAll(ctx, s.Client, target, now)
	if err != nil {
		return err
	}
	answer := explain.Explain(o)
	if !has(answer, code) || code != noWorkload && has(answer, noWorkload) {
		return fmt.Errorf("mlbatch why does not say %s:\n%s", code, explain.Text(answer, now))
	}
	if *folder == "" {
		return nil
	}
	return s.keep(code, o)
}

// Read is what mlbatch why reads, for whoever has to find out why it does not say what it should.
func (s Stage) Read(ctx context.Context, target why.Target) string {
	o, err := why.ReadAll(ctx, s.Client, target, time.Now())
	if err != nil {
		return err.Error()
	}
	text, err := Text("Read just now", o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func has(answer explain.Explanation, code explain.Code) bool {
	return slices.ContainsFunc(answer.Causes, func(c explain.Cause) bool { return c.Code == code })
}

// keep writes the file of a scene, of which the same answer can be made.
func (s Stage) keep(code explain.Code, o explain.Objects) error {
	comment, err := s.comment(time.Now())
	if err != nil {
		return err
	}
	text, err := Text(comment, o)
	if err != nil {
		return err
	}
	again, err := Read(text)
	if err != nil {
		return fmt.Errorf("cannot read what was recorded: %w", err)
	}
	if want, got := codes(explain.Explain(o)), codes(explain.Explain(again)); want != got {
		return fmt.Errorf("the causes are %s, but %s of what was recorded", want, got)
	}
	if err := os.MkdirAll(*folder, 0o755); err != nil {
		return fmt.Errorf("cannot keep the scene: %w", err)
	}
	return os.WriteFile(filepath.Join(*folder, string(code)+".in.yaml"), text, 0o644)
}

func codes(answer explain.Explanation) string {
	var all []string
	for _, c := range answer.Causes {
		all = append(all, string(c.Code))
	}
	return strings.Join(all, ", ")
}

func (s Stage) comment(today time.Time) (string, error) {
	versions, err := setup.Load()
	if err != nil {
		return "", err
	}
	if versions, err = versions.On(os.Getenv("MLBATCH_KUBERNETES")); err != nil {
		return "", err
	}
	return fmt.Sprintf("%sKubernetes %s and Kueue %s on %s, %s.", strings.TrimPrefix(Head, "# "), versions.LocalCluster.Kubernetes,
		versions.Platform["kueue"].Version, s.On, today.UTC().Format(time.DateOnly)), nil
}
