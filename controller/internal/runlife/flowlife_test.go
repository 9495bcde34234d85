// SPDX-License-Identifier: Apache-2.0

package runlife_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/golden"
)

// pipeline is the workflow of most stories.
func pipeline() *flow {
	return newFlow(step("prepare", v1alpha1.WhenSucceeded), step("train", v1alpha1.WhenSucceeded, "prepare"),
		step("evaluate", v1alpha1.WhenSucceeded, "train"), step("report", v1alpha1.WhenFailed, "train"))
}

var flowStories = map[string]func(*flow){
	"a-step-fails-and-another-reports-it": func(f *flow) {
		f.settle()
		f.ends("prepare", v1beta2.AppWrapperSucceeded)
		f.ends("train", v1beta2.AppWrapperFailed)
		f.ends("report", v1beta2.AppWrapperSucceeded)
	},
	"all-steps-succeed": func(f *flow) {
		f.settle()
		f.ends("prepare", v1beta2.AppWrapperSucceeded)
		f.ends("train", v1beta2.AppWrapperSucceeded)
		f.ends("evaluate", v1beta2.AppWrapperSucceeded)
	},
	"cancel-between-two-steps": func(f *flow) {
		f.settle()
		f.ends("prepare", v1beta2.AppWrapperSucceeded)
		f.moves("train", v1beta2.AppWrapperRunning)
		f.cancels()
		f.removes("train")
	},
	"the-deadline-of-a-workflow": func(f *flow) {
		f.run.Spec.ActiveDeadlineSeconds = ptr.To(int64(600))
		f.settle()
		f.ends("prepare", v1beta2.AppWrapperSucceeded)
		f.pass(time.Hour)
	},
	"the-appwrapper-of-a-step-is-deleted": func(f *flow) {
		f.settle()
		f.moves("prepare", v1beta2.AppWrapperRunning)
		f.removes("prepare")
	},
	"a-step-waits-for-its-application": func(f *flow) {
		f.loses()
		f.finds()
		f.loses() // what has started is not affected
		f.ends("prepare", v1beta2.AppWrapperSucceeded)
		f.finds()
	},
	"a-step-is-refused-for-a-while": func(f *flow) {
		f.refusal = runlife.Refused
		f.settle()
		f.pass(time.Hour)
		f.refusal = ""
		f.pass(5 * time.Minute)
	},
	"a-step-is-made-and-the-cache-is-late": func(f *flow) {
		f.lags()
		f.settle()
		f.loses() // nothing can be planned for the step that is there
		f.cancels()
		f.catchesUp()
	},
	"a-workflow-is-deleted": func(f *flow) {
		f.settle()
		f.ends("prepare", v1beta2.AppWrapperSucceeded)
		f.deletes()
	},
}

func TestStoriesOfWorkflows(t *testing.T) {
	var files []string
	for title, story := range flowStories {
		file := filepath.Join("testdata", "workflows", title+".golden")
		files = append(files, file)
		t.Run(title, func(t *testing.T) {
			f := pipeline()
			s := &transcript{world: &f.world}
			f.notes, f.broken = s.note, func(promise string) { t.Errorf("broken: %s", promise) }
			s.note("user", "creates a Run of a workflow")
			story(f)
			fmt.Fprintf(&s.text, "\n%d status writes, AppWrappers made: %v, %d lists of pods\n", f.writes, f.madeFor, f.lists)
			golden.Compare(t, file, []byte(s.text.String()))
		})
	}
	golden.Only(t, filepath.Join("testdata", "workflows", "*.golden"), files)
}

// A step costs at most the six status writes of a Run, and the workflow two beside them.
func TestAStepCostsAtMostSixStatusWrites(t *testing.T) {
	f := pipeline()
	f.broken = func(promise string) { t.Errorf("broken: %s", promise) }
	f.settle()
	for _, name := range []string{"prepare", "train", "evaluate"} {
		f.ends(name, v1beta2.AppWrapperSucceeded)
	}
	if f.run.Status.Phase != v1alpha1.RunSucceeded || f.writes > 2+3*6 {
		t.Errorf("it is %s after %d writes", f.run.Status.Phase, f.writes)
	}
}

func drawFlow(t *rapid.T) []v1alpha1.Step {
	var steps []v1alpha1.Step
	for i := range rapid.IntRange(1, 5).Draw(t, "steps") {
		when := rapid.SampledFrom([]v1alpha1.When{v1alpha1.WhenSucceeded, v1alpha1.WhenFailed, v1alpha1.WhenAlways}).Draw(t, "when")
		one := step(fmt.Sprintf("s%d", i), when)
		for before := range i {
			if rapid.Bool().Draw(t, "depends") {
				one.DependsOn = append(one.DependsOn, fmt.Sprintf("s%d", before))
			}
		}
		steps = append(steps, one)
	}
	if rapid.Bool().Draw(t, "from the last") { // the order in which steps are written means nothing
		slices.Reverse(steps)
	}
	return steps
}

// flowDeeds are what others do to a step.
var flowDeeds = map[string]func(*flow, string){
	"suspended":  func(f *flow, step string) { f.moves(step, v1beta2.AppWrapperSuspended) },
	"running":    func(f *flow, step string) { f.moves(step, v1beta2.AppWrapperRunning) },
	"resetting":  func(f *flow, step string) { f.moves(step, v1beta2.AppWrapperResetting) },
	"succeeded":  func(f *flow, step string) { f.moves(step, v1beta2.AppWrapperSucceeded) },
	"succeeds":   func(f *flow, step string) { f.moves(step, v1beta2.AppWrapperSucceeded) }, // often
	"failed":     func(f *flow, step string) { f.moves(step, v1beta2.AppWrapperFailed) },
	"gone":       (*flow).removes,
	"cancel":     func(f *flow, _ string) { f.cancels() },
	"deletes":    func(f *flow, _ string) { f.deletes() },
	"no program": func(f *flow, _ string) { f.loses() },
	"program":    func(f *flow, _ string) { f.finds() },
	"policy":     func(f *flow, _ string) { f.refusal = runlife.Refused; f.pass(runlife.RefusalPause) },
	"no policy":  func(f *flow, _ string) { f.refusal = ""; f.pass(runlife.RefusalPause) },
	"late":       func(f *flow, _ string) { f.lags() },
	"up to date": func(f *flow, _ string) { f.catchesUp() },
	"a minute":   func(f *flow, _ string) { f.pass(time.Minute) },
	"an hour":    func(f *flow, _ string) { f.pass(time.Hour) },
	"back":       func(f *flow, _ string) { f.jumps(-time.Hour) },
	"ahead":      func(f *flow, _ string) { f.jumps(time.Hour) },
}

func TestPromisesOfWorkflows(t *testing.T) {
	var names []string
	for name := range flowDeeds {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		steps := drawFlow(t)
		deadline := rapid.SampledFrom([]int64{0, 30, 1800}).Draw(t, "deadline")
		crashes := rapid.SliceOfN(rapid.Bool(), 200, 200).Draw(t, "crashes")
		calm, rough := newFlow(steps...), newFlow(steps...)
		n := 0
		rough.died = func() bool {
			n++
			return crashes[n%len(crashes)] && n%7 != 0
		}
		both := func(do func(*flow)) { do(calm); do(rough); calm.settle(); rough.settle() }
		both(func(f *flow) {
			f.broken = func(promise string) { t.Fatalf("broken: %s", promise) }
			if deadline > 0 {
				f.run.Spec.ActiveDeadlineSeconds = &deadline
			}
		})
		for range rapid.IntRange(1, 40).Draw(t, "deeds") {
			deed := rapid.SampledFrom(names).Draw(t, "deed")
			of := rapid.SampledFrom(steps).Draw(t, "of").Name
			both(func(f *flow) { flowDeeds[deed](f, of) })
			if diff := cmp.Diff(calm.place(), rough.place()); diff != "" {
				t.Fatalf("broken: a crash after any save or effect changes nothing; after %q of %s (-calm +rough)\n%s", deed, of, diff)
			}
			for name, made := range calm.madeFor {
				if made > 1 && calm.run.DeletionTimestamp == nil {
					t.Fatalf("broken: one AppWrapper a step; %d were made of %s", made, name)
				}
			}
		}
	})
}

// What the ends of two steps mean for the one that depends on both.
func TestWhenAStepStarts(t *testing.T) {
	for sentence, row := range map[string]struct {
		first, second v1beta2.AppWrapperPhase
		when          v1alpha1.When
		want          v1alpha1.RunPhase
	}{
		"after two successes":                     {v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperSucceeded, v1alpha1.WhenSucceeded, v1alpha1.RunQueued},
		"not after one failure":                   {v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed, v1alpha1.WhenSucceeded, v1alpha1.StepSkipped},
		"not before both have ended":              {v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperRunning, v1alpha1.WhenSucceeded, v1alpha1.StepWaiting},
		"after a failure, if it is for failures":  {v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperFailed, v1alpha1.WhenFailed, v1alpha1.RunQueued},
		"not without one":                         {v1beta2.AppWrapperSucceeded, v1beta2.AppWrapperSucceeded, v1alpha1.WhenFailed, v1alpha1.StepSkipped},
		"not after one failure, but after all":    {v1beta2.AppWrapperFailed, v1beta2.AppWrapperRunning, v1alpha1.WhenFailed, v1alpha1.StepWaiting},
		"always, once all have ended":             {v1beta2.AppWrapperFailed, v1beta2.AppWrapperSucceeded, v1alpha1.WhenAlways, v1alpha1.RunQueued},
		"never before that, even if it is always": {v1beta2.AppWrapperFailed, v1beta2.AppWrapperRunning, v1alpha1.WhenAlways, v1alpha1.StepWaiting},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFlow(step("a", ""), step("b", ""), step("c", row.when, "a", "b"))
			f.broken = func(promise string) { t.Errorf("broken: %s", promise) }
			f.settle()
			f.moves("a", row.first)
			f.moves("b", row.second)
			if got := f.run.Status.Steps[2].Phase; got != row.want {
				t.Errorf("it is %s, want %s", got, row.want)
			}
		})
	}
}

// The rights of the author cover all steps, or none starts.
func TestTheAuthorMayCreateWhatAllStepsNeed(t *testing.T) {
	f := newFlow(step("a", ""), v1alpha1.Step{Name: "b", Application: v1alpha1.ApplicationReference{Name: "torch"}, DependsOn: []string{"a"}})
	torch := application()
	torch.Name, torch.Spec.API = "torch", v1alpha1.APITorch
	f.apps = append(f.apps, *torch)
	f.settle()
	c := meta.FindStatusCondition(f.run.Status.Conditions, v1alpha1.Accepted)
	if c.Reason != runlife.Forbidden || !strings.Contains(c.Message, "neither create nor wrap pytorchjobs.kubeflow.org") || len(f.run.Status.Steps) > 0 {
		t.Errorf("%s: %s, and %d steps", c.Reason, c.Message, len(f.run.Status.Steps))
	}
}

// An AppWrapper of the workflow's own name is nothing to it, and one of a step's name is.
func TestTheNamesOfAWorkflow(t *testing.T) {
	f := pipeline()
	s := f.snapshot()
	s.AppWrapper = appWrapper("uid-of-another")
	if d := runlife.Decide(s, f.now); len(d.Status.Steps) == 0 {
		t.Errorf("it is refused: %s", d.Status.Message)
	}
	f.works["prepare"] = appWrapper("uid-of-another")
	f.works["prepare"].Name = runplan.AppWrapperName("digits-1", "prepare")
	f.settle()
	prepare := f.run.Status.Steps[0]
	if prepare.Phase != v1alpha1.StepWaiting || prepare.Message != runlife.NameTakenBy("digits-1-prepare") || f.madeFor["prepare"] > 0 {
		t.Errorf("%s: %s", prepare.Phase, prepare.Message)
	}
}

// The author of a workflow learns which fields of its Application count for no step.
func TestAWorkflowSaysWhatItDoesNotUse(t *testing.T) {
	f := newFlow(step("a", ""))
	f.apps[0].Spec.Size = "xl"
	f.settle()
	const want = "1 step; no step uses size of Application digits: set it in the Applications of the steps"
	if got := meta.FindStatusCondition(f.run.Status.Conditions, v1alpha1.Accepted); got == nil || got.Message != want {
		t.Errorf("Accepted is %+v", got)
	}
}

// What is counted of a workflow is counted of all its steps.
func TestTheRetriesOfAllStepsCount(t *testing.T) {
	f := newFlow(step("a", ""), step("b", ""))
	f.settle()
	for _, name := range []string{"a", "b", "b"} {
		f.moves(name, v1beta2.AppWrapperResetting)
	}
	if got := f.run.Status.Retries; got != 3 {
		t.Errorf("%d retries, want 3", got)
	}
}

// A Run that was planned may find its Application to be a workflow, as long as it has no AppWrapper.
// What it would have got is not what its steps get.
func TestAWorkflowHasNoSizeOfAnEarlierPlan(t *testing.T) {
	f := pipeline()
	f.broken = func(promise string) { t.Errorf("broken: %s", promise) }
	f.run.Status.Resolved = &v1alpha1.Resolved{Size: "xl", Workers: 20, Repo: "https://h/a/b/tree/c"}
	f.settle()
	if got := f.run.Status.Resolved; got != nil || len(f.run.Status.Steps) == 0 {
		t.Errorf("it has the size %v", got)
	}
}
