// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// listed is the item of an object that is added to the world.
func listed(t *testing.T, object client.Object) work.Item {
	t.Helper()
	c := cluster(t, interceptor.Funcs{})
	object.SetNamespace("red")
	object.SetName("it")
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	all, err := work.List(t.Context(), c, "red", now)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all.Items, func(i work.Item) bool { return i.Name == "it" })
	return all.Items[i]
}

func TestTheStageOfAnAppWrapper(t *testing.T) {
	for want, statuses := range map[string][]v1beta2.AppWrapperStatus{
		work.Queued:   {{}, {Phase: v1beta2.AppWrapperSuspended}, {Phase: v1beta2.AppWrapperSuspended, Conditions: is(v1beta2.Deactivated)}},
		work.Starting: {{Phase: v1beta2.AppWrapperResuming}, {Phase: v1beta2.AppWrapperRunning}, {Phase: v1beta2.AppWrapperRunning, Retries: 1}},
		work.Running:  {{Phase: v1beta2.AppWrapperRunning, Conditions: is(v1beta2.PodsReady)}},
		work.Retrying: {
			{Phase: v1beta2.AppWrapperResetting}, {Phase: v1beta2.AppWrapperResuming, Retries: 1}, {Phase: v1beta2.AppWrapperResuming, StartupRetries: 1},
			{Phase: v1beta2.AppWrapperResuming, Migrations: 1},
		},
		work.Preempted: {{Phase: v1beta2.AppWrapperSuspending}, {Phase: v1beta2.AppWrapperSuspended, Conditions: is(v1beta2.Requeued)}},
		work.Stopping:  {{Phase: v1beta2.AppWrapperSuspending, Conditions: is(v1beta2.Deactivated)}, {Phase: v1beta2.AppWrapperTerminating}},
		work.Succeeded: {{Phase: v1beta2.AppWrapperSucceeded}},
		work.Failed:    {{Phase: v1beta2.AppWrapperFailed}},
	} {
		for _, status := range statuses {
			if i := listed(t, &v1beta2.AppWrapper{Status: status}); i.Stage != want {
				t.Errorf("%+v is %s, want %s", status, i.Stage, want)
			}
		}
	}
}

func is(condition v1beta2.AppWrapperCondition) []metav1.Condition {
	return []metav1.Condition{{Type: string(condition), Status: metav1.ConditionTrue}}
}

// Runs have the same words.
func TestTheStageOfARun(t *testing.T) {
	for phase, want := range map[v1alpha1.RunPhase]string{
		"": work.Queued, v1alpha1.RunPending: work.Queued, v1alpha1.RunQueued: work.Queued, v1alpha1.RunStarting: work.Starting, v1alpha1.RunRunning: work.Running,
		v1alpha1.RunRetrying: work.Retrying, v1alpha1.RunPreempted: work.Preempted, v1alpha1.RunSucceeded: work.Succeeded, v1alpha1.RunFailed: work.Failed,
		v1alpha1.RunCancelled: work.Cancelled,
	} {
		run := &v1alpha1.Run{Status: v1alpha1.RunStatus{Phase: phase}}
		run.Annotations = map[string]string{v1alpha1.AuthorAnnotation: "system:alice"}
		if i := listed(t, run); i.Stage != want || i.Kind != "Run" || i.User != "system_alice" || !slices.Contains(work.Stages(), i.Stage) {
			t.Errorf("a Run that is %q is %+v, want %s", phase, i, want)
		}
	}
}

// An AppWrapper whose Run cannot be read is listed itself.
func TestWorkIsListedOnce(t *testing.T) {
	for want, forbidden := range map[string][]client.ObjectList{"study": nil, "step": {&v1alpha1.RunList{}}} {
		all, err := work.List(t.Context(), cluster(t, mayNotList(forbidden...)), "red", now)
		var names []string
		for _, i := range all.Items {
			names = append(names, i.Name)
		}
		if both := slices.Contains(names, "study") && slices.Contains(names, "step"); err != nil || both || !slices.Contains(names, want) || (len(all.Unknown) > 0) != (forbidden != nil) {
			t.Errorf("got %q, %q, %v; want %s", names, all.Unknown, err, want)
		}
	}
}

func TestAFilterChoosesWork(t *testing.T) {
	all, err := work.List(t.Context(), cluster(t, interceptor.Funcs{}), "", now)
	if err != nil {
		t.Fatal(err)
	}
	vision, err := labels.Parse("project=vision")
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]work.Filter{
		"train survey tune misspelled pulls waits done door lost study": {},
		"survey lost": {Stages: []string{work.Failed}},
		"pulls":       {User: "alice"},
		"pulls ":      {Labels: vision},
		"":            {User: "alice", Stages: []string{work.Failed}},
		"train survey tune misspelled pulls waits door study": {Ended: 20 * time.Minute},
	} {
		var names []string
		wanted, past := all.Only(f, now)
		for _, i := range wanted.Items {
			names = append(names, i.Name)
		}
		if strings.Join(names, " ") != strings.TrimSpace(want) || (past == 2) != (f.Ended != 0) {
			t.Errorf("%+v chooses %q and leaves out %d, want %q", f, names, past, want)
		}
	}
	if _, err := work.ParseStages([]string{"queued", "Suspended"}); err != nil {
		wording.OneSentence(t, "", err, "there is no state Suspended: use Queued, Starting, Running, ")
	}
	if found, err := work.ParseStages([]string{"queued", "FAILED"}); err != nil || !slices.Equal(found, []string{work.Queued, work.Failed}) {
		t.Errorf("got %q, %v", found, err)
	}
}
