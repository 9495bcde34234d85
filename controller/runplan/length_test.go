// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// Master and worker have the same variables.
func TestAnAppWrapperOfTwoRolesThatCannotBeStoredIsNotPlanned(t *testing.T) {
	in := given(func(_ *v1alpha1.Application, run *v1alpha1.Run) { run.Spec.Env = longVariables(17, "a") })
	got, problems := runplan.Plan(in)
	if got != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].Message, "the AppWrapper would have 1090 KiB, and may have 1024: put") {
		t.Errorf("got %v", problems)
	}
}

// Many of these at once must not take the memory of the controller.
func TestToRefuseWhatIsTooLargeCostsLittle(t *testing.T) {
	controls := func(_ *v1alpha1.Application, run *v1alpha1.Run) { run.Spec.Env = longVariables(20, "\x01") }
	long := func(app *v1alpha1.Application, run *v1alpha1.Run) {
		app.Spec.Env, run.Spec.Env = longVariables(44, "$"), longVariables(44, "<")
		for i := range 8 {
			app.Spec.Code = append(app.Spec.Code, v1alpha1.CodeFile{Name: strconv.Itoa(i), Source: strings.Repeat("<", 64<<10)})
		}
	}
	one, many := given(long), workflowInput()
	long(&many.Applications[0], many.Run)
	for name, in := range map[string]runplan.Input{"a Run": one, "a workflow": many, "a Run of control characters": given(controls)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, problems := runplan.Plans(in)
		runtime.ReadMemStats(&after)
		if got != nil || !strings.Contains(problems[0].Message, "KiB or more, and may have 1024") {
			t.Errorf("%s: %v", name, problems)
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 4<<20 {
			t.Errorf("%s costs %d MiB", name, bytes>>20)
		}
	}
}

// A controller that plans many workflows at once keeps of each what it needs to judge it.
func TestTheOutlineOfAWorkflowIsSmall(t *testing.T) {
	in := workflowInput()
	in.Run.Spec.Env = longVariables(15, "a")
	whole, _ := runplan.Plans(in)
	in.Outline = true
	outline, problems := runplan.Plans(in)
	if len(whole) == 0 || len(outline) != len(whole) {
		t.Fatalf("there are %d plans and %d outlines: %v", len(whole), len(outline), problems)
	}
	for i := range whole {
		isWrapped(t, outline[i].AppWrapper)
		text, err := json.Marshal(outline[i])
		if err != nil || len(text) > 4<<10 || outline[i].Step == nil {
			t.Errorf("step %d: %d bytes: %v", i, len(text), err)
		}
		if is, was := len(outline[i].AppWrapper.Spec.Components), len(whole[i].AppWrapper.Spec.Components); is != was {
			t.Errorf("step %d has %d components, and %d in its outline", i, was, is)
		}
	}
	in.Run, in.Step, in.Application = runplan.ForStep(in.Run, *whole[0].Step), whole[0].Step, &in.Applications[0]
	step, _ := runplan.Plans(in)
	if len(step) != 1 || !cmp.Equal(whole[0].AppWrapper, step[0].AppWrapper) {
		t.Error("a step that starts has an outline only")
	}
}

func longVariables(n int, of string) map[string]v1alpha1.Text {
	all := map[string]v1alpha1.Text{}
	for i := range n {
		all[of+strconv.Itoa(i)] = v1alpha1.Text(strings.Repeat(of, 32<<10))
	}
	return all
}
