// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	gpu  corev1.ResourceName = "nvidia.com/gpu"
	rdma corev1.ResourceName = "nvidia.com/roce_gdr"
)

var high = "high"

var rules = Rules{
	Labels: map[string][]corev1.Taint{
		"nvidia.com/gpu": {
			{Key: "gpuhealth", Value: "TESTING", Effect: corev1.TaintEffectNoSchedule},
			{Key: "gpuhealth", Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
		},
		"nvidia.com/roce_gdr": {
			{Key: "gpuhealth", Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
			{Key: "network", Value: "", Effect: corev1.TaintEffectNoExecute},
		},
		"example.com/disk": {{Key: "disk", Value: "SLOW", Effect: corev1.TaintEffectPreferNoSchedule}},
	},
	Listed: Listed{
		Conditions: []ConditionRule{
			{Type: "GpuUnhealthy", Status: "True", Reaction: leave(gpu, rdma)},
			{Type: "Ready", Status: "Unknown", Reaction: leave(AllPods)},
		},
		Taints: []TaintRule{
			{Key: "broken", Reaction: leave(AllPods)},
			{Key: "heat", Value: &high, TaintEffect: corev1.TaintEffectNoSchedule, Reaction: leave(gpu)},
		},
		DevicesMissing: []Reaction{leave(gpu)},
	},
	NotReady: NotReady{Leave: true, Grace: time.Minute},
}

func leave(resources ...corev1.ResourceName) Reaction {
	return Reaction{Resources: resources, Effect: corev1.TaintEffectNoExecute}
}

// a node with this change.
func a(change func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{}
	node.Name = "n"
	change(node)
	return node
}

func labelled(labels map[string]string) *corev1.Node {
	return a(func(node *corev1.Node) { node.Labels = labels })
}

func in(kind corev1.NodeConditionType, status corev1.ConditionStatus) *corev1.Node {
	return a(func(node *corev1.Node) { node.Status.Conditions = []corev1.NodeCondition{{Type: kind, Status: status}} })
}

func inSince(kind corev1.NodeConditionType, status corev1.ConditionStatus) *corev1.Node {
	node := in(kind, status)
	node.Status.Conditions[0].LastTransitionTime = metav1.Unix(7, 0)
	return node
}

func tainted(taints ...corev1.Taint) *corev1.Node {
	return a(func(node *corev1.Node) { node.Spec.Taints = taints })
}

func withGPUs(allocatable, capacity string) *corev1.Node { return offering(gpu, allocatable, capacity) }

func offering(name corev1.ResourceName, allocatable, capacity string) *corev1.Node {
	return a(func(node *corev1.Node) {
		node.Status.Allocatable = corev1.ResourceList{name: resource.MustParse(allocatable)}
		node.Status.Capacity = corev1.ResourceList{name: resource.MustParse(capacity)}
	})
}

func TestFindings(t *testing.T) {
	evict, unhealthy := Cause{NodeLabel, "gpuhealth=EVICT"}, Cause{NodeCondition, "GpuUnhealthy=True"}
	broken := corev1.Taint{Key: "broken", Value: "v", Effect: corev1.TaintEffectNoExecute}
	heat := corev1.Taint{Key: "heat", Value: "high", Effect: corev1.TaintEffectNoSchedule}
	added := broken
	added.TimeAdded = &metav1.Time{Time: time.Unix(1, 0)}
	silent := corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}
	silentSince := silent
	silentSince.TimeAdded = &metav1.Time{Time: time.Unix(1, 0)}
	notReady := corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute}
	notReadyNode := inSince("Ready", "False")
	notReadyNode.Spec.Taints = []corev1.Taint{notReady}
	silentCause, notReadyCause := Cause{NodeNotReady, silent.Key}, Cause{NodeNotReady, notReady.Key}
	for sentence, tc := range map[string]struct {
		node *corev1.Node
		want []Finding
	}{
		"an unreachable node has a grace":                  {tainted(silentSince), []Finding{{Cause: silentCause, Resource: AllPods, Taint: silent, Since: time.Unix(1, 0), Grace: time.Minute}}},
		"a verdict may be of unknown age":                  {tainted(notReady), []Finding{{Cause: notReadyCause, Resource: AllPods, Taint: notReady, Grace: time.Minute}}},
		"then it is as old as the state of the node":       {notReadyNode, []Finding{{Cause: notReadyCause, Resource: AllPods, Taint: notReady, Since: time.Unix(7, 0), Grace: time.Minute}}},
		"a condition tells since when":                     {inSince("GpuUnhealthy", "True"), []Finding{{Cause: unhealthy, Resource: gpu, Since: time.Unix(7, 0)}, {Cause: unhealthy, Resource: rdma, Since: time.Unix(7, 0)}}},
		"no new pods is not yet the verdict":               {tainted(corev1.Taint{Key: silent.Key, Effect: corev1.TaintEffectNoSchedule}), nil},
		"nothing is wrong with an empty node":              {labelled(nil), nil},
		"a label without a rule has no effect":             {labelled(map[string]string{"zone": "EVICT"}), nil},
		"a weaker effect is only for pods to be scheduled": {labelled(map[string]string{"gpuhealth": "TESTING", "disk": "SLOW"}), nil},
		"one label may concern several resources":          {labelled(map[string]string{"gpuhealth": "EVICT"}), []Finding{{Cause: evict, Resource: gpu}, {Cause: evict, Resource: rdma}}},
		"a label may have an empty value":                  {labelled(map[string]string{"network": ""}), []Finding{{Cause: Cause{NodeLabel, "network="}, Resource: rdma}}},
		"another value is another label":                   {labelled(map[string]string{"network": "EVICT", "gpuhealth": "OK"}), nil},
		"a condition may concern several resources":        {in("GpuUnhealthy", "True"), []Finding{{Cause: unhealthy, Resource: gpu}, {Cause: unhealthy, Resource: rdma}}},
		"a condition may concern all pods":                 {in("Ready", "Unknown"), []Finding{{Cause: Cause{NodeCondition, "Ready=Unknown"}, Resource: AllPods}}},
		"a condition with another status is none":          {in("GpuUnhealthy", "Unknown"), nil},
		"a condition without a rule is none":               {in("DiskPressure", "True"), nil},
		"a taint counts by its key alone":                  {tainted(added), []Finding{{Cause: Cause{NodeTaint, "broken=v:NoExecute"}, Resource: AllPods, Taint: broken, Since: time.Unix(1, 0)}}},
		"a taint counts with its value and effect":         {tainted(heat), []Finding{{Cause: Cause{NodeTaint, "heat=high:NoSchedule"}, Resource: gpu, Taint: heat}}},
		"a taint with another value does not":              {tainted(corev1.Taint{Key: "heat", Value: "low", Effect: corev1.TaintEffectNoSchedule}), nil},
		"a taint with another effect does not":             {tainted(corev1.Taint{Key: "heat", Value: "high", Effect: corev1.TaintEffectNoExecute}), nil},
		"a taint named as a label is none":                 {tainted(corev1.Taint{Key: "gpuhealth", Value: "EVICT", Effect: corev1.TaintEffectNoExecute}), nil},
		"a device that is not allocatable is missing":      {withGPUs("7", "8"), []Finding{{Cause: Cause{DevicesMissing, "nvidia.com/gpu"}, Resource: gpu, Usable: 7}}},
		"a time slice of a device is missing": {offering("nvidia.com/gpu.shared", "31", "32"),
			[]Finding{{Cause: Cause{DevicesMissing, "nvidia.com/gpu.shared"}, Resource: "nvidia.com/gpu.shared", Usable: 31}}},
		"a part of a device is missing": {offering("nvidia.com/mig-1g.10gb", "6", "7"),
			[]Finding{{Cause: Cause{DevicesMissing, "nvidia.com/mig-1g.10gb"}, Resource: "nvidia.com/mig-1g.10gb", Usable: 6}}},
		"a device of another maker is none of the rule":      {offering("amd.com/gpu", "7", "8"), nil},
		"no device is missing if all are allocatable":        {withGPUs("8", "8"), nil},
		"no device is known while the device plugin is away": {withGPUs("0", "8"), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rules.Findings(tc.node)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, rules.Findings(rules.Slim(tc.node))); diff != "" {
				t.Errorf("of a slim node (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConcerns(t *testing.T) {
	condition := Finding{Cause: Cause{NodeCondition, "GpuUnhealthy=True"}, Resource: gpu}
	silent := Finding{Cause: Cause{NodeNotReady, "u"}, Resource: AllPods, Taint: corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}}
	everybody := Finding{Cause: Cause{NodeCondition, "Ready=Unknown"}, Resource: AllPods}
	taint := Finding{Cause: Cause{NodeTaint, "k=v:NoExecute"}, Resource: AllPods, Taint: corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}}
	missing := Finding{Cause: Cause{DevicesMissing, "nvidia.com/gpu"}, Resource: gpu, Usable: 7}
	with4, without := podWith(gpu, "4"), podWith("cpu", "1")
	minute := int64(60)
	for sentence, tc := range map[string]struct {
		finding Finding
		pod     corev1.PodSpec
		inUse   int64
		want    bool
	}{
		"who requests the resource has to leave":             {condition, with4, 4, true},
		"who requests a part of it has to leave":             {condition, podWith("nvidia.com/mig-1g.10gb", "1"), 0, true},
		"who requests a time slice of it has to leave":       {condition, podWith("nvidia.com/gpu.shared", "1"), 0, true},
		"who requests shares of a part has to leave":         {condition, podWith("nvidia.com/mig-1g.10gb.shared", "1"), 0, true},
		"who requests another device may stay":               {condition, podWith("nvidia.com/gpumem", "1"), 0, false},
		"who uses a part has no whole one that is missing":   {missing, podWith("nvidia.com/mig-1g.10gb", "1"), 8, false},
		"who does not may stay":                              {condition, without, 0, false},
		"a finding about all pods concerns everybody":        {everybody, without, 0, true},
		"who does not tolerate the taint has to leave":       {taint, with4, 4, true},
		"who tolerates it may stay":                          {taint, tolerant(corev1.Toleration{Key: "k", Value: "v"}), 0, false},
		"who tolerates any value may stay":                   {taint, tolerant(corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoExecute"}), 0, false},
		"who tolerates a silent node for a while must leave": {silent, tolerant(corev1.Toleration{Key: "k", Operator: "Exists", TolerationSeconds: &minute}), 0, true},
		"who tolerates a silent node may stay":               {silent, tolerant(corev1.Toleration{Key: "k", Operator: "Exists"}), 0, false},
		"who tolerates everything may stay":                  {taint, tolerant(corev1.Toleration{Operator: "Exists"}), 0, false},
		"who tolerates another value has to leave":           {taint, tolerant(corev1.Toleration{Key: "k", Operator: "Equal", Value: "w"}), 0, true},
		"who tolerates another effect has to leave":          {taint, tolerant(corev1.Toleration{Key: "k", Operator: "Exists", Effect: "NoSchedule"}), 0, true},
		"who tolerates another key has to leave":             {taint, tolerant(corev1.Toleration{Key: "l", Operator: "Exists"}), 0, true},
		"who tolerates it for a while has to leave":          {taint, tolerant(corev1.Toleration{Key: "k", Operator: "Exists", TolerationSeconds: &minute}), 0, true},
		"a missing device is nobody's while others suffice":  {missing, with4, 7, false},
		"it is somebody's when they do not":                  {missing, with4, 8, true},
		"who uses no device has none that is missing":        {missing, without, 8, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := tc.finding.Concerns(&tc.pod, tc.inUse); got != tc.want {
				t.Errorf("got %t", got)
			}
			tc.pod.Tolerations = Rules{Listed: Listed{Taints: []TaintRule{{Key: "k"}}}}.SlimTolerations(tc.pod.Tolerations)
			if got := tc.finding.Concerns(&tc.pod, tc.inUse); got != tc.want {
				t.Errorf("from a cache: got %t", got)
			}
		})
	}
}

// A pod that was told how long to stay does so. What Kubernetes gives every pod tells nothing.
func TestDue(t *testing.T) {
	since := time.Unix(1000, 0)
	stay := func(key string, seconds int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds}
	}
	silent := Finding{Cause: Cause{NodeNotReady, corev1.TaintNodeUnreachable}, Resource: AllPods, Since: since, Grace: time.Minute,
		Taint: corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	broken := Finding{Cause: Cause{NodeTaint, "k:NoExecute"}, Resource: AllPods, Since: since, Taint: corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}}
	undated := func(f Finding) Finding { f.Since = time.Time{}; return f }
	const never = -1
	for sentence, tc := range map[string]struct {
		finding     Finding
		tolerations []corev1.Toleration
		want        time.Duration // since then; 0 is at once
	}{
		"a silent node has its grace":                           {silent, nil, time.Minute},
		"the default of Kubernetes makes no difference":         {silent, []corev1.Toleration{stay(corev1.TaintNodeUnreachable, 300)}, time.Minute},
		"a pod may be told to stay longer":                      {silent, []corev1.Toleration{stay(corev1.TaintNodeUnreachable, 1800)}, 30 * time.Minute},
		"or less long":                                          {silent, []corev1.Toleration{stay(corev1.TaintNodeUnreachable, 20)}, 20 * time.Second},
		"the first of its tolerations counts":                   {silent, []corev1.Toleration{stay("", 1800), stay(corev1.TaintNodeUnreachable, 20)}, 30 * time.Minute},
		"a verdict of unknown age is left to Kubernetes":        {undated(silent), nil, never},
		"a taint means at once":                                 {broken, nil, 0},
		"even one of unknown age":                               {undated(broken), nil, 0},
		"a pod may be told to stay there, too":                  {broken, []corev1.Toleration{stay("k", 300)}, 5 * time.Minute},
		"from an unknown time on, Kubernetes evicts it":         {undated(broken), []corev1.Toleration{stay("k", 300)}, never},
		"pods of a node that is gone are removed by Kubernetes": {Gone()[0], nil, never},
		"a label, condition or device has to do with no taint":  {Finding{Cause: Cause{NodeLabel, "l"}}, []corev1.Toleration{stay("", 300)}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			want := time.Time{}
			if tc.want > 0 {
				want = since.Add(tc.want)
			}
			slim := rules
			slim.Taints = append(slices.Clone(rules.Taints), TaintRule{Key: "k", Reaction: leave(AllPods)})
			for _, tolerations := range [][]corev1.Toleration{tc.tolerations, slim.SlimTolerations(tc.tolerations)} {
				due, known := tc.finding.Due(&corev1.PodSpec{Tolerations: tolerations})
				if known != (tc.want != never) || !due.Equal(want) {
					t.Errorf("got %s, %t, want %s", due, known, want)
				}
			}
		})
	}
}

func TestExplains(t *testing.T) {
	failed := time.Unix(100_000, 0)
	for sentence, tc := range map[string]struct {
		since, now time.Duration // after the failure
		undated    bool
		want       bool
	}{
		"a sign from before":                               {since: -time.Hour, now: time.Minute, want: true},
		"a sign that a health check finds later":           {since: 9 * time.Minute, now: time.Hour, want: true},
		"not a sign from long after":                       {since: 11 * time.Minute, now: time.Hour},
		"a sign of unknown age, of a failure just now":     {undated: true, now: time.Minute, want: true},
		"not a sign of unknown age, of a failure long ago": {undated: true, now: 11 * time.Minute},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := Finding{Since: failed.Add(tc.since)}
			if tc.undated {
				f.Since = time.Time{}
			}
			if got := f.Explains(failed, failed.Add(tc.now)); got != tc.want {
				t.Errorf("got %t", got)
			}
			if !f.Explains(time.Time{}, failed) {
				t.Error("what happens at present is not explained")
			}
		})
	}
}

func podWith(name corev1.ResourceName, n string) corev1.PodSpec {
	limits := corev1.ResourceRequirements{Limits: corev1.ResourceList{name: resource.MustParse(n)}}
	return corev1.PodSpec{Containers: []corev1.Container{{Resources: limits}}}
}

func tolerant(t corev1.Toleration) corev1.PodSpec {
	return corev1.PodSpec{Tolerations: []corev1.Toleration{t}}
}

func TestACauseNamesItsSourceAndSign(t *testing.T) {
	if got := (Cause{NodeCondition, "GpuUnhealthy=True"}).String(); got != "NodeCondition GpuUnhealthy=True" {
		t.Errorf("got %q", got)
	}
}

// An administrator who wants work to leave cordoned nodes lists the taint that a cordon sets.
func TestACordonIsATaint(t *testing.T) {
	cordon := Rules{Listed: Listed{Taints: []TaintRule{{Key: corev1.TaintNodeUnschedulable, Reaction: leave(AllPods)}}}}
	node := tainted(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	if got := cordon.Findings(node); len(got) != 1 || got[0].String() != "NodeTaint node.kubernetes.io/unschedulable:NoSchedule" {
		t.Errorf("got %v", got)
	}
}

func TestNodesThatAreNotReadyMayBeNoConcern(t *testing.T) {
	silent := tainted(corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	off := Rules{NotReady: NotReady{Grace: time.Minute}}
	if len(off.Findings(silent)) > 0 || len(off.Resources()) > 0 || len(off.Slim(silent).Spec.Taints) > 0 {
		t.Error("they are, although leave is false")
	}
	on := Rules{NotReady: NotReady{Leave: true}}
	if !slices.Equal(on.Resources(), []corev1.ResourceName{AllPods}) || len(on.SlimTolerations([]corev1.Toleration{{Key: corev1.TaintNodeUnreachable}, {Operator: "Exists"}, {Key: "k"}})) != 2 {
		t.Error("they are none, although leave is true")
	}
}

func TestTheGuideSaysHowLateASignMayBe(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fault-tolerance.md")
	if err != nil {
		t.Fatal(err)
	}
	says := fmt.Sprintf("A sign that appears up to %v minutes after a failure explains it", attribution.Minutes())
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), says) {
		t.Errorf("docs/fault-tolerance.md does not say %q", says)
	}
}

// Users look up the names that messages and metrics have.
func TestTheDocumentationHasTheSources(t *testing.T) {
	text, err := os.ReadFile("../../../docs/lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range Sources() {
		if row := "| `" + string(source) + "` |"; !strings.Contains(string(text), row) {
			t.Errorf("docs/lifecycle.md has no row %s", row)
		}
	}
}

func TestResources(t *testing.T) {
	if diff := cmp.Diff([]corev1.ResourceName{AllPods, gpu, rdma}, rules.Resources()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	onlyLabels := Rules{Labels: rules.Labels}
	if diff := cmp.Diff([]corev1.ResourceName{gpu, rdma}, onlyLabels.Resources()); diff != "" {
		t.Errorf("of labels (-want +got):\n%s", diff)
	}
	for _, listed := range []Listed{{Conditions: rules.Conditions[:1]}, {Taints: rules.Taints[1:]}, {DevicesMissing: rules.DevicesMissing}} {
		if len(Rules{Listed: listed}.Resources()) == 0 || listed.None() {
			t.Errorf("%+v is no rule", listed)
		}
	}
}

func TestSlimKeepsOnlyWhatTheRulesRead(t *testing.T) {
	node := labelled(map[string]string{"gpuhealth": "EVICT", "zone": "a"})
	node.Annotations = map[string]string{"long": "text"}
	node.Spec.Taints = []corev1.Taint{{Key: "k"}, {Key: "broken", TimeAdded: &metav1.Time{Time: time.Unix(1, 0)}}}
	node.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: "DiskPressure"},
		{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Unix(1, 0), LastTransitionTime: metav1.Unix(1, 0), Reason: "r", Message: "m"}}
	node.Status.Capacity = corev1.ResourceList{gpu: resource.MustParse("8"), "cpu": resource.MustParse("96")}
	node.Status.Allocatable = node.Status.Capacity
	want := labelled(map[string]string{"gpuhealth": "EVICT"})
	want.Spec.Taints = node.Spec.Taints[1:]
	want.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True", LastTransitionTime: metav1.Unix(1, 0)}}
	want.Status.Capacity = corev1.ResourceList{gpu: resource.MustParse("8")}
	want.Status.Allocatable = want.Status.Capacity
	if diff := cmp.Diff(want, rules.Slim(node)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, rules.Slim(rules.Slim(node))); diff != "" {
		t.Errorf("twice (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(labelled(map[string]string{"gpuhealth": "EVICT"}), Rules{Labels: rules.Labels}.Slim(node)); diff != "" {
		t.Errorf("with labels only (-want +got):\n%s", diff)
	}
}

func TestTolerationsAreKeptOnlyForTaintsWithARule(t *testing.T) {
	seconds := int64(300)
	whole := []corev1.Toleration{{Key: "broken"}, {Operator: corev1.TolerationOpExists}, {Key: "broken", TolerationSeconds: &seconds}, {Key: "gpus"},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}}
	if diff := cmp.Diff(whole[:3], rules.SlimTolerations(whole)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (Rules{Labels: rules.Labels}).SlimTolerations(whole); got != nil {
		t.Errorf("without a rule: %v", got)
	}
}
