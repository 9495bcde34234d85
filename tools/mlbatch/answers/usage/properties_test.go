// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/test/sameseed"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
)

func TestMain(m *testing.M) { os.Exit(sameseed.Run(m)) }

// life is an AppWrapper with its Workload, and with when it really had quota, and worked.
type life struct {
	aw        *v1beta2.AppWrapper
	workload  kueue.Workload
	had       spans
	preempted spans
	inFlight  spans
}

type span struct{ from, to time.Time }

type spans []span

// within is how many seconds of them are between two times.
func (all spans) within(from, to time.Time) (sum int64) {
	for _, s := range all {
		if s.from.Before(from) {
			s.from = from
		}
		if s.to.After(to) {
			s.to = to
		}
		sum += max(0, s.to.Unix()-s.from.Unix())
	}
	return sum
}

// drawLife lives as the controller and Kueue do: each counts with its own clock, and saves whole seconds.
func drawLife(t *rapid.T, name string) life {
	at := now.Add(-time.Duration(rapid.Int64Range(0, int64(2*week/time.Second)).Draw(t, "age")) * time.Second)
	l := life{aw: given.AppWrapper(name).With(given.Job(name, 1)).Build()}
	l.aw.Namespace = rapid.SampledFrom([]string{"blue", "red"}).Draw(t, "team")
	l.aw.UID, l.aw.CreationTimestamp = types.UID(name), metav1.Time{Time: at}
	l.aw.Labels = map[string]string{v1beta2.UserLabel: rapid.SampledFrom([]string{"ada", "bob", ""}).Draw(t, "user"), v1beta2.QueueNameLabel: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")}
	l.workload.CreationTimestamp = l.aw.CreationTimestamp
	l.workload.OwnerReferences = []metav1.OwnerReference{{Kind: "AppWrapper", UID: l.aw.UID, Controller: new(true)}}
	l.aw.Status.Phase = v1beta2.AppWrapperSuspended
	for range rapid.IntRange(0, 5).Draw(t, "reservations") {
		from := at.Add(drawPause(t))
		works := from.Add(drawPause(t))
		at = works.Add(drawPause(t))
		if !l.turn(from, v1beta2.AppWrapperRunning, metav1.ConditionTrue, metav1.ConditionFalse) {
			break
		}
		l.turn(works, v1beta2.AppWrapperRunning, metav1.ConditionTrue, metav1.ConditionTrue)
		if !l.turn(at, v1beta2.AppWrapperSuspending, metav1.ConditionTrue, metav1.ConditionFalse) {
			l.had, l.inFlight = append(l.had, span{from, now}), spans{{works, now}}
			break
		}
		l.turn(at, v1beta2.AppWrapperSuspended, metav1.ConditionFalse, metav1.ConditionFalse)
		l.had, l.preempted = append(l.had, span{from, at}), append(l.preempted, span{works, at})
	}
	return l
}

func drawPause(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(1, int64(2*24*time.Hour/time.Second)).Draw(t, "pause")) * time.Second
}

// turn saves a status, with and without quota and pods that are ready, unless that is in the future.
func (l *life) turn(at time.Time, phase v1beta2.AppWrapperPhase, quota, ready metav1.ConditionStatus) bool {
	if !at.Before(now) {
		return false
	}
	before := *l.aw.Status.DeepCopy()
	s := &l.aw.Status
	s.Phase = phase
	if had := meta.FindStatusCondition(before.Conditions, string(v1beta2.QuotaReserved)); had != nil && had.Status != quota && quota == metav1.ConditionFalse {
		past := int32(at.Unix()-had.LastTransitionTime.Unix()) + ptr.Deref(l.workload.Status.AccumulatedPastExecutionTimeSeconds, 0)
		l.workload.Status.AccumulatedPastExecutionTimeSeconds = &past
	}
	for kind, status := range map[v1beta2.AppWrapperCondition]metav1.ConditionStatus{v1beta2.QuotaReserved: quota, v1beta2.PodsReady: ready} {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: string(kind), Status: status, Reason: "Any", LastTransitionTime: metav1.Time{Time: at}})
	}
	l.workload.Status.Conditions = s.Conditions
	s.Usage = ledger.Post(before, *s, ledger.Facts{Reserved: at}, at)
	s.ComponentStatus = []v1beta2.AppWrapperComponentStatus{{PodSets: []v1beta2.AppWrapperPodSet{{Path: "template.spec.template"}}}}
	cores := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}
	l.workload.Spec.PodSets = []kueue.PodSet{{Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: cores}}}}}}
	return true
}

func drawLives(t *rapid.T) (o usage.Objects) {
	for i := range rapid.IntRange(0, 8).Draw(t, "lives") {
		l := drawLife(t, fmt.Sprintf("aw%d", i))
		o.AppWrappers, o.Workloads = append(o.AppWrappers, *l.aw), append(o.Workloads, l.workload)
	}
	return o
}

// What is left out of objects changes nothing.
func TestSlimObjectsCountTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, slim := drawLives(t), usage.Objects{Workloads: []kueue.Workload{}}
		if whole.Workloads == nil {
			whole.Workloads = []kueue.Workload{}
		}
		for i := range whole.AppWrappers {
			slim.Add(&whole.AppWrappers[i])
			slim.AddWorkload(&whole.Workloads[i])
		}
		q := usage.Query{By: rapid.SampledFrom(usage.Dimensions()).Draw(t, "by"), Resource: rapid.SampledFrom([]string{"", "cpu", "pods"}).Draw(t, "resource")}
		if diff := cmp.Diff(usage.Count(whole, q, now), usage.Count(slim, q, now)); diff != "" {
			t.Fatalf("(-whole +slim)\n%s", diff)
		}
	})
}

// Whatever the rows are about: the classes of a row add up to it, and the rows add up to the totals.
func TestRowsAndClassesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLives(t)
		since := time.Duration(rapid.Int64Range(0, int64(2*week)).Draw(t, "since"))
		var first map[string]usage.Hours
		for _, by := range usage.Dimensions() {
			report := usage.Count(o, usage.Query{By: by, Since: since}, now)
			sums := map[string]usage.Hours{}
			for _, row := range report.Rows {
				sums[row.Resource] += row.Reserved
				var classes usage.Hours
				for _, hours := range row.Classes {
					classes += hours
				}
				if by != "cause" && classes != row.Reserved {
					t.Fatalf("by %s: the classes of %v add up to %s, not to %s", by, row.Key, classes, row.Reserved)
				}
			}
			totals := map[string]usage.Hours{}
			for _, row := range report.Totals {
				totals[row.Resource] = row.Reserved
			}
			if diff := cmp.Diff(totals, sums); diff != "" {
				t.Fatalf("by %s: the rows do not add up (-total +rows)\n%s", by, diff)
			}
			if first == nil {
				first = sums
			}
			if diff := cmp.Diff(first, sums); diff != "" {
				t.Fatalf("by %s: another sum than by team (-team +this)\n%s", by, diff)
			}
		}
	})
}

// An AppWrapper counts if it had quota in the window. What it had in the window is between what was reserved without
// what may have been earlier, and all that was reserved. The same is true of each cause.
func TestTheWindowPromisesNothingThatIsNotKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLife(t, "aw")
		since := time.Duration(rapid.Int64Range(1, int64(2*week/time.Second)).Draw(t, "since")) * time.Second
		report := usage.Count(usage.Objects{AppWrappers: []v1beta2.AppWrapper{*l.aw}}, usage.Query{By: "cause", Since: since, Resource: "pods"}, now)
		if len(report.Totals) == 0 {
			if really := l.had.within(now.Add(-since), now); really > 0 {
				t.Fatalf("it had quota for %d s in the window, and is not counted", really)
			}
			return
		}
		mustBeWithin(t, report.Totals[0], l.had, since)
		for _, row := range report.Rows {
			if of, known := map[ledger.Class]spans{ledger.InFlight: l.inFlight, ledger.LostToPreemption: l.preempted}[row.Cause]; known {
				mustBeWithin(t, row, of, since)
			}
		}
		if len(l.had) > 0 && l.had[len(l.had)-1].from.After(now.Add(-since)) && len(l.inFlight) > 0 {
			mustBeExact(t, report.Rows)
		}
	})
}

func mustBeWithin(t *rapid.T, row usage.Row, really spans, since time.Duration) {
	all, inWindow := hours(really.within(time.Time{}, now)), hours(really.within(now.Add(-since), now))
	if row.Reserved != all {
		t.Fatalf("%s: got %s hours, had %s", row.Cause, row.Reserved, all)
	}
	if inWindow < row.Reserved-row.Earlier {
		t.Fatalf("%s: of %s hours at most %s were earlier, but only %s were in the window", row.Cause, row.Reserved, row.Earlier, inWindow)
	}
}

// mustBeExact: nothing in flight was before the quota that the AppWrapper has now.
func mustBeExact(t *rapid.T, rows []usage.Row) {
	for _, row := range rows {
		if row.Cause == ledger.InFlight && row.Earlier > 0 {
			t.Fatalf("%s hours of what is in flight count as earlier", row.Earlier)
		}
	}
}

// hours of one pod.
func hours(seconds int64) usage.Hours { return usage.Hours(seconds * 1000) }

// Kueue adds up the same time with its own conditions.
func TestTheBooksAreKueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLives(t)
		for _, c := range usage.Count(o, usage.Query{By: "team"}, now).Kueue {
			if c.Compared != c.AppWrappers || c.Difference == nil || *c.Difference != 0 || c.Books != c.Kueue {
				t.Fatalf("got %+v", c)
			}
		}
	})
}

func TestWhatCannotBeComparedIsNot(t *testing.T) {
	for why, change := range map[string]func(*usage.Objects){
		"the Workload took the place of another one": func(o *usage.Objects) { o.Workloads[0].CreationTimestamp.Time = now },
		"Kueue forgets it":                           func(o *usage.Objects) { o.Workloads[0].Spec.MaximumExecutionTimeSeconds = new(int32(60)) },
		"there are two Workloads":                    func(o *usage.Objects) { o.Workloads = append(o.Workloads, o.Workloads[0]) },
		"the Workload is not its own":                func(o *usage.Objects) { o.Workloads[0].OwnerReferences[0].UID = "other" },
		"nobody owns the Workload":                   func(o *usage.Objects) { o.Workloads[0].OwnerReferences = nil },
		"Kueue has removed the Workload":             func(o *usage.Objects) { o.Workloads = o.Workloads[1:] },
	} {
		t.Run(why, func(t *testing.T) {
			o := objects(t)
			before := gpus(t, usage.Count(o, usage.Query{By: "team"}, now))
			change(&o)
			after := gpus(t, usage.Count(o, usage.Query{By: "team"}, now))
			if after.Compared != before.Compared-1 || after.AppWrappers != before.AppWrappers || after.Kueue >= before.Kueue {
				t.Errorf("got %+v, before %+v", after, before)
			}
		})
	}
	o := objects(t)
	o.Workloads = nil
	if got := usage.Count(o, usage.Query{By: "team"}, now).Kueue; got != nil {
		t.Errorf("without Workloads, got %+v", got)
	}
}

// A difference in time or in devices is seen, whichever side has more.
func TestBooksThatDoNotBalance(t *testing.T) {
	useful := func(o usage.Objects) *int64 { return ledger.In(o.AppWrappers[1].Status.Usage, ledger.Useful) }
	for why, row := range map[string]struct {
		change func(usage.Objects)
		sign   float64
	}{
		"time too much":      {func(o usage.Objects) { *useful(o) *= 2 }, 1},
		"time too little":    {func(o usage.Objects) { *useful(o) = 0 }, -1},
		"devices too much":   {func(o usage.Objects) { o.Workloads[1].Spec.PodSets[0].Count = 0 }, 1},
		"devices too little": {func(o usage.Objects) { held(o)["nvidia.com/gpu"] = resource.MustParse("32") }, -1},
	} {
		o := objects(t)
		row.change(o)
		if c := gpus(t, usage.Count(o, usage.Query{By: "team"}, now)); *c.Difference*row.sign < 1 {
			t.Errorf("%s: got %+.2f %% of %+v", why, *c.Difference, c)
		}
	}
}

func held(o usage.Objects) corev1.ResourceList {
	return o.Workloads[0].Status.Admission.PodSetAssignments[0].ResourceUsage
}

func gpus(t *testing.T, r usage.Report) usage.Comparison {
	t.Helper()
	for _, c := range r.Kueue {
		if c.Resource == "nvidia.com/gpu" {
			return c
		}
	}
	t.Fatal("there are no GPUs")
	return usage.Comparison{}
}
