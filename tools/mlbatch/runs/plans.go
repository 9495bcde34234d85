// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/setup"
)

// Plan is what is created for a Run.
type Plan struct {
	// Run is its name.
	Run string
	// Step is the name of a workflow's step, empty for other Runs.
	Step       string
	Size       runplan.Size
	AppWrapper *v1beta2.AppWrapper
}

// Plan plans all Runs, in their order. The error says why some cannot be planned. Notes are what
// the author should know.
func (m Manifests) Plan() (plans []Plan, notes []string, err error) {
	if len(m.Sizes) == 0 {
		m.Sizes = []v1alpha1.RunSizeConfiguration{runplan.DefaultSizes()}
		m.Notes = append(m.Notes, "the files have no RunSizeConfiguration: the default sizes are used")
	}
	return m.plan()
}

// PlanOn plans all Runs. What the files lack is looked up on the cluster, unless it has no Runs or the
// user may not read what is there.
func (m Manifests) PlanOn(ctx context.Context, c client.Client) (plans []Plan, notes []string, err error) {
	complete, err := m.completed(ctx, c)
	if errors.Is(err, ErrNoRuns) || apierrors.IsForbidden(err) {
		m.Notes = append(slices.Clone(m.Notes), fmt.Sprintf("nothing comes from the cluster: %v", err))
		return m.Plan()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; use --offline to plan without a cluster", err)
	}
	return complete.plan()
}

// plan plans with the sizes that are there.
func (m Manifests) plan() (plans []Plan, notes []string, err error) {
	notes = m.Notes
	var problems []string
	for _, run := range m.Runs {
		all, wrong := runplan.Plans(m.input(run))
		for _, p := range wrong {
			problems = append(problems, fmt.Sprintf("Run %s: %s", run.Name, p.Message))
		}
		if len(all) > 0 && all[0].Unused != "" {
			notes = append(notes, fmt.Sprintf("Run %s: %s", run.Name, all[0].Unused))
		}
		for _, planned := range all {
			plan := Plan{Run: run.Name, Size: planned.Size, AppWrapper: planned.AppWrapper}
			if planned.Step != nil {
				plan.Step = planned.Step.Name
			}
			for _, warning := range admissionrules.WarningsOnCreate(plan.AppWrapper) {
				notes = append(notes, fmt.Sprintf("Run %s: %s", plan.name(), warning))
			}
			plans = append(plans, plan)
		}
	}
	if len(problems) > 0 {
		return nil, notes, errors.New(strings.Join(problems, "; "))
	}
	return plans, notes, nil
}

// settings are those of a platform of this version whose administrator changed nothing, but for what is
// known of it: members cannot read the others.
func (m Manifests) settings() runplan.Settings {
	s := runplan.DefaultSettings()
	s.GPUResourceName = cmp.Or(m.GPUResourceName, s.GPUResourceName)
	s.Gang = !m.ungrouped
	if versions, err := setup.Load(); err == nil { // it is embedded, and a test reads it
		s.AgentImage = versions.AgentImage()
	}
	return s
}

// input is what the manifests have for a Run.
func (m Manifests) input(run v1alpha1.Run) runplan.Input {
	run.UID = "" // whoever creates what is printed may not name an owner
	in := runplan.Input{Run: &run, Sizes: m.Sizes, Settings: m.settings()}
	for _, app := range m.Applications {
		if app.Namespace != runplan.ApplicationNamespace(&run) {
			continue
		}
		in.Applications = append(in.Applications, app)
		if app.Name == run.Spec.Application.Name {
			in.Application = &app
		}
	}
	for _, dataSet := range m.DataSets {
		if dataSet.Namespace == run.Namespace {
			in.DataSets = append(in.DataSets, dataSet)
		}
	}
	return in
}

// name is that of the Run, with the step.
func (p Plan) name() string {
	if p.Step == "" {
		return p.Run
	}
	return p.Run + ", step " + p.Step
}

// WriteYAML prints the AppWrappers, each after a comment that says what its pods get.
func WriteYAML(out io.Writer, plans []Plan) error {
	for i, plan := range plans {
		text, err := yaml.Marshal(plan.AppWrapper)
		if err != nil {
			return fmt.Errorf("cannot print AppWrapper %s: %w", plan.AppWrapper.Name, err)
		}
		if i > 0 {
			fmt.Fprintln(out, "---")
		}
		fmt.Fprintf(out, "# Run %s: %s\n%s", plan.name(), plan.Size, text)
	}
	return nil
}

// WriteJSON prints the AppWrappers one after the other.
func WriteJSON(out io.Writer, plans []Plan) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	for _, plan := range plans {
		if err := encoder.Encode(plan.AppWrapper); err != nil {
			return fmt.Errorf("cannot print AppWrapper %s: %w", plan.AppWrapper.Name, err)
		}
	}
	return nil
}
