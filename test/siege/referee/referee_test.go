// SPDX-License-Identifier: Apache-2.0

package referee

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/counted/recount"
	"github.com/mlbatch/mlbatch/test/given"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// field is a moment at which a Job of the episode e7 has one pod with one device, and quota for it.
func field(changes ...func(*audit.Moment)) audit.Moment {
	w := given.Admitted("1")
	w.Name, w.Namespace = "job-e7-a-1f2e3", "siege-0"
	w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "e7-a", UID: "e7", Controller: new(true)}}
	w.Status.Admission.PodSetAssignments[0].Count = new(int32(1))
	queue := kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: string(w.Status.Admission.ClusterQueue)}}
	queue.Spec.CohortName = "siege"
	queue.Spec.ResourceGroups = []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{recount.GPU}, Flavors: []kueue.FlavorQuotas{{
		Name: "h100", Resources: []kueue.ResourceQuota{{Name: recount.GPU, NominalQuota: resource.MustParse("2")}},
	}}}}
	job := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "siege-0", Name: "e7-a", UID: "e7"}}
	m := audit.Moment{
		Time: noon, Namespaces: []string{"siege-0"}, Unread: map[string]string{}, Queues: []kueue.ClusterQueue{queue}, Workloads: []kueue.Workload{w},
		Owners: []metav1.PartialObjectMetadata{job}, Pods: []corev1.Pod{pod("e7-a-xyz")},
		Nodes:   []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "gpu-0"}}},
		Flavors: []kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "h100"}}},
	}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func pod(name string) corev1.Pod {
	return given.Pod(name, func(p *corev1.Pod) {
		p.Namespace, p.Labels[workload.AppWrapperLabel] = "siege-0", ""
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "e7-a", UID: "e7", Controller: new(true)}}
	})
}

func rulesOf(findings []Finding) (all []string) {
	for _, f := range findings {
		all = append(all, f.Rule+" "+f.Object)
	}
	return all
}

func TestWhatIsFound(t *testing.T) {
	second := func(m *audit.Moment) { m.Pods = append(m.Pods, pod("e7-a-uvw")) }
	ended := map[string]time.Time{"e7": noon.Add(-2 * time.Minute)}
	for name, c := range map[string]struct {
		m     audit.Moment
		ended map[string]time.Time
		want  []string
	}{
		"an honest cluster": {m: field()},
		"one device more than is reserved": {
			m: field(second), want: []string{"over-reservation Job siege-0/e7-a", "held episode siege-0/e7-a"},
		},
		"devices of pods that are told to end": {m: field(second, func(m *audit.Moment) { m.Pods[1].DeletionTimestamp = &metav1.Time{Time: noon} })},
		"more is reserved than there is": {
			m: field(func(m *audit.Moment) {
				m.Workloads[0].Status.Admission.PodSetAssignments[0].ResourceUsage[recount.GPU] = resource.MustParse("3")
			}),
			want: []string{"over-quota Cohort siege", "reserved cohort siege"},
		},
		"a pod that may take a day to end": {
			m: field(func(m *audit.Moment) { m.Pods[0].Spec.TerminationGracePeriodSeconds = new(int64(86400)) }), want: []string{"long grace Pod siege-0/e7-a-xyz"},
		},
		"such a pod of an AppWrapper": {
			m: field(func(m *audit.Moment) {
				m.Pods[0].Spec.TerminationGracePeriodSeconds, m.Pods[0].Labels[workload.AppWrapperLabel] = new(int64(86400)), "e7-a"
			}),
			want: []string{"mislabelled Pod siege-0/e7-a-xyz"},
		},
		"pods that run on": {m: field(), ended: ended, want: []string{"stays episode siege-0/e7-a"}},
		"pods that run on, and end within their time": {
			m: field(func(m *audit.Moment) { m.Pods[0].DeletionTimestamp = &metav1.Time{Time: noon.Add(time.Second)} }), ended: ended,
		},
		"quota without pods":      {m: field(func(m *audit.Moment) { m.Pods = nil }), ended: ended, want: []string{"held by nothing episode siege-0/e7-a"}},
		"an episode that goes on": {m: field(func(m *audit.Moment) { m.Pods = nil }), ended: map[string]time.Time{"e8": noon.Add(-2 * time.Minute)}},
		"an episode that has just ended": {
			m: field(func(m *audit.Moment) { m.Pods = nil }), ended: map[string]time.Time{"e7": noon.Add(-time.Second)},
		},
	} {
		r := Referee{Grace: 30 * time.Second, Stays: time.Minute}
		for range fewestLooks - 1 {
			if early := r.Judge(c.m, c.ended); len(early) > 0 {
				t.Errorf("%s: found too early: %v", name, early)
			}
		}
		got := rulesOf(r.Judge(c.m, c.ended))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Controllers work one after the other: what is wrong for a moment counts for nothing, however often.
func TestOnlyWhatLastsCounts(t *testing.T) {
	r := Referee{Grace: 30 * time.Second, Lasting: 5 * time.Second, Stays: time.Minute}
	for i, look := range []struct {
		after time.Duration
		wrong bool
		want  int
	}{{0, true, 0}, {4, true, 0}, {5, false, 0}, {6, true, 0}, {10, true, 0}, {11, true, 2}, {12, true, 2}, {13, false, 0}, {14, true, 0}, {24, true, 0}, {25, true, 2}} {
		m := field(func(m *audit.Moment) {
			m.Time = noon.Add(look.after * time.Second)
			if look.wrong {
				m.Pods = append(m.Pods, pod("e7-a-uvw"))
			}
		})
		if got := r.Judge(m, nil); len(got) != look.want {
			t.Errorf("look %d: got %v", i, got)
		}
	}
}

// Controllers that have begun again have to catch up. Afterwards, what is wrong has to last as long as ever.
func TestWhatIsWrongBeforeJudgingBeginsCountsForNothing(t *testing.T) {
	r := Referee{Lasting: 5 * time.Second}
	for i, look := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {3, 0}, {6, 2}, {7, 0}, {16, 0}, {17, 0}, {19, 0}, {22, 2}} {
		if i == 3 {
			r.From = noon.Add(17 * time.Second)
		}
		m := field(func(m *audit.Moment) {
			m.Time, m.Pods = noon.Add(look.after*time.Second), append(m.Pods, pod("e7-a-uvw"))
		})
		if got := r.Judge(m, nil); len(got) != look.want {
			t.Errorf("look %d: got %v", i, got)
		}
	}
}

func TestTheNamespaceIsInTheObject(t *testing.T) {
	for object, want := range map[string]string{"Workload siege-3/job-e7-a-1f2e3": "siege-3", "episode siege-10/e7-a": "siege-10", "Cohort siege": ""} {
		if got := (Finding{Object: object}).Namespace(); got != want {
			t.Errorf("%s: got %q", object, got)
		}
	}
}

func TestTheEpisodeIsInTheName(t *testing.T) {
	for name, want := range map[string]string{
		"e7-a": "e7", "PyTorchJob siege-0/e12-b": "e12", "pytorchjob-e12-c-1f2e3": "e12", "e7-a-worker-0": "e7", "canary-3": "", "e7-z": "", "some7-a": "",
	} {
		if got := EpisodeOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// What is excused is in the page that says what stays open, and is counted.
func TestKnownExceptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	oneLine := strings.Join(strings.Fields(string(page)), " ")
	for _, k := range slices.Concat(known, OfEditors) {
		if !strings.Contains(oneLine, k.Says) {
			t.Errorf("docs/security.md does not say: %s", k.Says)
		}
		r := Referee{Known: OfEditors}
		if left := r.unexcused([]Finding{{Rule: k.Rule, Object: k.Object + "siege-0/e7-a"}, {Rule: "other", Object: k.Object}}); len(left) != 1 || r.Excused[k.Says] != 1 {
			t.Errorf("%+v: left %v, excused %v", k, left, r.Excused)
		}
	}
}
