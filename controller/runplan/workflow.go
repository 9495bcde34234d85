// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// Plans returns what is created for a Run or for one step: one AppWrapper, or that of each step of a
// workflow.
func Plans(in Input) ([]*Planned, []Problem) {
	if problems := noStep(in); len(problems) > 0 {
		return nil, problems
	}
	if in.Step != nil || in.Application == nil || !in.Application.Spec.API.IsWorkflow() {
		planned, problems := Plan(in)
		return nonNil(planned), problems
	}
	if problems := hopeless(in.Run.Spec.Env, nil); len(problems) > 0 {
		return nil, problems
	}
	steps := stepsOf(in.Application)
	problems := slices.Concat(waitingForEachOther(steps), tooManySteps(in.Run, steps))
	if in.Run.Spec.Options != nil {
		problems = append(problems, impossible("the options of a workflow are those of its steps: leave options of the Run out"))
	}
	var all []*Planned
	for i := range steps {
		planned, wrong := planStep(in, &steps[i])
		if in.Outline {
			outline(planned)
		}
		all = append(all, nonNil(planned)...)
		problems = append(problems, wrong...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return all, nil
}

// unused says which fields of a workflow's Application none of its steps uses. They describe a program, and
// a manifest of 2023 may have them.
func unused(app *v1alpha1.Application) string {
	spec := app.Spec
	var names []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"image", spec.Image != ""}, {"command", spec.Command != ""}, {"options", spec.Options != ""},
		{"env", len(spec.Env) > 0}, {"envFrom", len(spec.EnvFrom) > 0},
		{"code", len(spec.Code) > 0}, {"repo", spec.Repo != ""}, {"inputs", len(spec.Inputs) > 0},
		{"size", spec.Size != ""}, {"supportsGpu", spec.SupportsGPU},
		{"imagePullSecret", spec.ImagePullSecret != ""}, {"securityContext", spec.SecurityContext != nil},
	} {
		if field.set {
			names = append(names, field.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("no step uses %s of Application %s: set it in the Applications of the steps", list(names, "or"), app.Name)
}

// tooManySteps: the Run could not be stored with its steps, which its status keeps.
func tooManySteps(run *v1alpha1.Run, steps []v1alpha1.Step) []Problem {
	text, err := json.Marshal([]any{run.ObjectMeta, run.Spec, steps})
	if err != nil {
		return []Problem{problem(Refused, "%v", err)}
	}
	if len(text) <= largest {
		return nil
	}
	return []Problem{impossible("the Run with its steps would have %d KiB, and may have %d: leave long options of steps to their Applications",
		len(text)>>10, largest>>10)}
}

func nonNil(planned *Planned) []*Planned {
	if planned == nil {
		return nil
	}
	return []*Planned{planned}
}

// planStep is the plan of a step that has not started.
func planStep(in Input, step *v1alpha1.Step) (*Planned, []Problem) {
	workflow := in.Application
	in.Run, in.Step, in.Application = ForStep(in.Run, *step), step, nil
	for i, app := range in.Applications {
		if app.Name == step.Application.Name {
			in.Application = &in.Applications[i]
		}
	}
	if problems := noStep(in); len(problems) > 0 {
		return nil, problems
	}
	planned, problems := Plan(in)
	if planned != nil {
		planned.Unused = unused(workflow)
	}
	for i := range problems {
		problems[i].Message = "step " + step.Name + ": " + problems[i].Message
	}
	return planned, problems
}

// noStep: the Application of a step cannot be one. It may have changed since the Run was accepted.
func noStep(in Input) []Problem {
	switch {
	case in.Step == nil || in.Application == nil:
		return nil
	case !isStep(in.Application.Spec.API):
		return []Problem{impossible("step %s is a %s, and must be %s", in.Step.Name, in.Application.Spec.API, archetypesBut(v1alpha1.APIWorkQueue))}
	case isInteractive(in.Application):
		return []Problem{impossible("step %s is an interactive cluster, which has no end: give Application %s a command", in.Step.Name, in.Application.Name)}
	}
	return nil
}

// isStep: Applications of an api can be steps.
func isStep(api v1alpha1.API) bool {
	return archetypes[api] != nil && api != v1alpha1.APIWorkQueue
}

// archetypesBut lists the archetypes but for one.
func archetypesBut(one v1alpha1.API) string {
	var all []string
	for api := range archetypes {
		if api != one {
			all = append(all, string(api))
		}
	}
	return list(slices.Sorted(slices.Values(all)), "or")
}

// ForStep is a Run as one of its steps sees it. All that the step does not have is the Run's.
func ForStep(run *v1alpha1.Run, step v1alpha1.Step) *v1alpha1.Run {
	own := *run
	own.Spec.Application = v1alpha1.ApplicationReference{Name: step.Application.Name, Namespace: run.Spec.Application.Namespace}
	own.Spec.Options = step.Options
	own.Spec.Size = cmp.Or(step.Size, run.Spec.Size)
	return &own
}

// stepsOf are the steps of a workflow. Those of a sequence wait for the one before them.
func stepsOf(app *v1alpha1.Application) []v1alpha1.Step {
	if workflow := app.Spec.Workflow; workflow != nil {
		return slices.Clone(workflow.Steps)
	}
	var steps []v1alpha1.Step
	for i, name := range app.Spec.Steps {
		step := v1alpha1.Step{Name: fmt.Sprintf("step%d", i), Application: v1alpha1.ApplicationReference{Name: name}, When: v1alpha1.WhenSucceeded}
		if i > 0 {
			step.DependsOn = []string{steps[i-1].Name}
		}
		steps = append(steps, step)
	}
	return steps
}

// ApplicationsOf are the names of the Applications that a workflow runs.
func ApplicationsOf(app *v1alpha1.Application) []string {
	var names []string
	for _, step := range stepsOf(app) {
		names = append(names, step.Application.Name)
	}
	return names
}

// waitingForEachOther finds steps that never start. First those go that can end, and then those
// that only wait for the others.
func waitingForEachOther(steps []v1alpha1.Step) []Problem {
	left := map[string]v1alpha1.Step{}
	for _, step := range steps {
		left[step.Name] = step
	}
	isLeft := func(name string) bool { _, is := left[name]; return is }
	isAwaited := func(name string) bool {
		for _, step := range left {
			if slices.Contains(step.DependsOn, name) {
				return true
			}
		}
		return false
	}
	for range steps {
		maps.DeleteFunc(left, func(_ string, step v1alpha1.Step) bool { return !slices.ContainsFunc(step.DependsOn, isLeft) })
	}
	for range steps {
		maps.DeleteFunc(left, func(name string, _ v1alpha1.Step) bool { return !isAwaited(name) })
	}
	if len(left) == 0 {
		return nil
	}
	return []Problem{impossible("the steps %s wait for each other", list(slices.Sorted(maps.Keys(left)), "and"))}
}

// list is "a, b and c".
func list(names []string, and string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + and + " " + names[last]
}
