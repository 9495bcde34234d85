// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
)

// onePolicy is one of the compiled policies: each takes a second.
func onePolicy(t *testing.T, name string) validating.Validator {
	t.Helper()
	return compile(t, policiesWith(t, nil)["mlbatch-"+name])
}

// startable is each kind of work with these fields of its spec, of its metadata, and a status.
var startable = map[string]func(suspend, fields, metadata, status string) string{}

func init() {
	for kind, group := range map[string]string{
		"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "RayCluster": "ray.io/v1", "RayJob": "ray.io/v1", "RayService": "ray.io/v1",
		"LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
	} {
		startable[kind] = func(suspend, fields, metadata, status string) string {
			return `{apiVersion: ` + group + `, kind: ` + kind + `, metadata: {name: w, ` + metadata + `}, spec: {suspend: ` + suspend + `, ` + fields + `}, status: {` + status + `}}`
		}
	}
	for kind, group := range map[string]string{
		"PyTorchJob": "kubeflow.org/v1", "TFJob": "kubeflow.org/v1", "XGBoostJob": "kubeflow.org/v1", "PaddleJob": "kubeflow.org/v1", "JAXJob": "kubeflow.org/v1", "MPIJob": "kubeflow.org/v2beta1",
	} {
		startable[kind] = func(suspend, fields, metadata, status string) string {
			return `{apiVersion: ` + group + `, kind: ` + kind + `, metadata: {name: w, ` + metadata + `}, spec: {runPolicy: {suspend: ` + suspend + `}, ` + fields + `}, status: {` + status + `}}`
		}
	}
	startable["AppWrapper"] = func(suspend, fields, metadata, status string) string {
		return `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: w, ` + metadata + `}, spec: {suspend: ` + suspend + `, ` + fields + `}, status: {` + status + `}}`
	}
}

// Kueue has counted what is started. A field that is on no list cannot change it either.
func TestWhatIsStartedDoesNotChange(t *testing.T) {
	started := onePolicy(t, "started")
	const before, after, big = "a: b, l: [{n: 1}]", "a: b, l: [{n: 2}]", "a: b, l: [{n: 1}], c: d"
	const onlySuspend, reserved, starts = "only suspend of its spec can be changed", "only controllers may change its labels and annotations", "only Kueue may start work"
	const stopped, rests = "conditions: [{type: Suspended, status: 'False'}, {type: Running, status: 'True'}]", "conditions: [{type: Suspended, status: 'True'}]"
	for kind, of := range startable {
		t.Run(kind, func(t *testing.T) {
			running := of("false", before, "", stopped)
			for change, c := range map[string]struct{ object, old, want string }{
				"a field of a list":              {of("false", after, "", ""), running, onlySuspend},
				"another field":                  {of("false", big, "", ""), running, onlySuspend},
				"a field less":                   {of("false", "a: b", "", ""), running, onlySuspend},
				"all fields":                     {strings.Replace(running, "l: [", "z: [", 1), running, onlySuspend},
				"the same while it stops":        {of("true", after, "", ""), running, onlySuspend},
				"one before its pods have ended": {of("true", after, "", ""), of("true", before, "", stopped), onlySuspend},
				"a field beside the spec":        {strings.Replace(running, "kind:", "data: {a: b}, kind:", 1), running, onlySuspend},
				"a label of Kueue":               {of("false", before, "labels: {kueue.x-k8s.io/queue-name: q}", ""), running, reserved},
				"a priority of Kueue":            {of("false", before, "labels: {kueue.x-k8s.io/priority-class: q}", ""), running, reserved},
				"a label of KubeRay":             {of("false", before, "labels: {ray.io/originated-from-crd: RayJob}", ""), running, reserved},
				"an annotation of an operator":   {of("false", before, "annotations: {training.kubeflow.org/a: b}", ""), running, reserved},
				"an annotation that is removed":  {running, of("false", before, "annotations: {batch.kubernetes.io/a: b}", ""), reserved},
				"one that gets another value":    {of("false", before, "annotations: {jobset.sigs.k8s.io/a: c}", ""), of("false", before, "annotations: {jobset.sigs.k8s.io/a: b}", ""), reserved},
				"an empty one":                   {of("false", before, "labels: {workload.codeflare.dev/: ''}", ""), running, reserved},
				"nothing":                        {running, running, ""},
				"labels and annotations":         {of("false", before, "labels: {a: b, example.com/ray.io: c}, annotations: {what: for, workload.codeflare.dev.appwrapper/retryLimit: '1'}", ""), running, ""},
				"those that are removed":         {running, of("false", before, "labels: {a: b}", ""), ""},
				"suspend":                        {of("true", before, "", ""), running, ""},
				"start":                          {of("false", before, "", ""), of("true", before, "", rests), starts},
				"a change while it waits":        {of("true", after, "", ""), of("true", before, "", rests), ""},
				"one that nobody has seen yet":   {of("true", after, "", ""), of("true", before, "", ""), ""},
				"another queue while it waits":   {of("true", before, "labels: {kueue.x-k8s.io/queue-name: q}", ""), of("true", before, "", rests), ""},
				"another operator meanwhile":     {of("true", before+", managedBy: x, runPolicy: {suspend: true, managedBy: x}", "", ""), of("true", before+", runPolicy: {suspend: true}", "", rests), "managedBy cannot be changed"},
			} {
				want := c.want
				if want == starts && (kind == "AppWrapper" || kind == "Job" || kind == "MPIJob") {
					want = "" // the webhook asks who may; nobody queues the others
				}
				r := request{operation: admission.Update, object: c.object, old: c.old}
				got := judge(t, started, r, false)
				if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
					t.Errorf("%s: want %q, got %q", change, want, got)
				}
				if got := judge(t, started, r, true); len(got) > 0 {
					t.Errorf("%s: a controller is refused: %q", change, got)
				}
			}
		})
	}
}

// Each operator says in its own words that nothing runs any more.
func TestWhatWaitsMayChange(t *testing.T) {
	started := onePolicy(t, "started")
	for name, c := range map[string]struct {
		kind, status string
		may          bool
	}{
		"a PyTorchJob that Kueue has just started":       {"PyTorchJob", "conditions: [{type: Created, status: 'True'}, {type: Suspended, status: 'False'}]", false},
		"a PyTorchJob that was preempted":                {"PyTorchJob", "conditions: [{type: Running, status: 'False'}, {type: Suspended, status: 'True'}]", true},
		"a RayCluster that is suspended":                 {"RayCluster", "state: suspended, conditions: [{type: RayClusterSuspended, status: 'True'}]", true},
		"a RayCluster that is being suspended":           {"RayCluster", "state: suspended, conditions: [{type: RayClusterSuspending, status: 'True'}]", false},
		"a RayCluster that runs":                         {"RayCluster", "state: ready", false},
		"a RayCluster of a KubeRay without conditions":   {"RayCluster", "state: suspended", true},
		"a RayJob that is suspended":                     {"RayJob", "jobDeploymentStatus: Suspended", true},
		"a RayJob that is being suspended":               {"RayJob", "jobDeploymentStatus: Suspending", false},
		"an AppWrapper that waits":                       {"AppWrapper", "phase: Suspended, conditions: [{type: QuotaReserved, status: 'False'}]", true},
		"an AppWrapper whose pods end":                   {"AppWrapper", "phase: Suspending, conditions: [{type: QuotaReserved, status: 'True'}]", false},
		"a JobSet that is suspended":                     {"JobSet", "conditions: [{type: Suspended, status: 'True'}]", true},
		"a condition without a type, as no operator has": {"JobSet", "conditions: [{type: Other, status: 'True'}]", false},
	} {
		t.Run(name, func(t *testing.T) {
			of := startable[c.kind]
			got := judge(t, started, request{operation: admission.Update, object: of("true", "n: 2", "labels: {kueue.x-k8s.io/queue-name: q}", ""), old: of("true", "n: 1", "", c.status)}, false)
			if c.may != (len(got) == 0) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// What work owns, and a pod of nobody's, keeps its spec as well.
func TestWhatBelongsToWorkDoesNotChange(t *testing.T) {
	started := onePolicy(t, "started")
	owned := func(version, kind, by, fields, metadata string) string {
		return `{apiVersion: ` + version + `, kind: ` + kind + `, metadata: {name: w, ownerReferences: [{kind: ` + by + `, name: o, controller: true}], ` + metadata + `}, spec: {` + fields + `}}`
	}
	for name, c := range map[string]struct{ object, old, want string }{
		"a Deployment of an AppWrapper":              {owned("apps/v1", "Deployment", "AppWrapper", "replicas: 2", ""), owned("apps/v1", "Deployment", "AppWrapper", "replicas: 1", ""), "it belongs to AppWrapper o"},
		"a wrapped Job that is suspended":            {owned("batch/v1", "Job", "AppWrapper", "suspend: true", ""), owned("batch/v1", "Job", "AppWrapper", "suspend: false", ""), "it belongs to AppWrapper o"},
		"one that waits with it":                     {owned("batch/v1", "Job", "AppWrapper", "suspend: true, n: 2", ""), owned("batch/v1", "Job", "AppWrapper", "suspend: true, n: 1", ""), "it belongs to AppWrapper o"},
		"a queue of a wrapped Job":                   {owned("batch/v1", "Job", "AppWrapper", "suspend: true", "labels: {kueue.x-k8s.io/queue-name: q}"), owned("batch/v1", "Job", "AppWrapper", "suspend: true", ""), "kueue.x-k8s.io/queue-name as it is"},
		"a CronJob of an AppWrapper":                 {owned("batch/v1", "CronJob", "AppWrapper", "n: 2", ""), owned("batch/v1", "CronJob", "AppWrapper", "n: 1", ""), "it belongs to AppWrapper o"},
		"a kind of the site":                         {owned("example.com/v1", "Rocket", "AppWrapper", "n: 2", ""), owned("example.com/v1", "Rocket", "AppWrapper", "n: 1", ""), "it belongs to AppWrapper o"},
		"a PodGroup of an AppWrapper":                {owned("scheduling.x-k8s.io/v1alpha1", "PodGroup", "AppWrapper", "minMember: 2", ""), owned("scheduling.x-k8s.io/v1alpha1", "PodGroup", "AppWrapper", "minMember: 1", ""), "it belongs to AppWrapper o"},
		"a revision, which has data":                 {`{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: w, ownerReferences: [{kind: StatefulSet, name: o, controller: true}]}, data: {a: 2}}`, `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: w, ownerReferences: [{kind: StatefulSet, name: o, controller: true}]}, data: {a: 1}}`, "it belongs to StatefulSet o"},
		"a pod that tolerates more":                  {podWith("tolerations: [{operator: Exists}]"), podWith(""), "the spec of a pod in a team namespace cannot be changed"},
		"a pod with another image":                   {podWith("containers: [{image: b}]"), podWith("containers: [{image: a}]"), "delete the pod and submit it with the spec that you need"},
		"a Run of a workflow that is cancelled":      {owned("codeflare.dev/v1alpha1", "Run", "Run", "a: b, cancel: true", ""), owned("codeflare.dev/v1alpha1", "Run", "Run", "a: b", ""), ""},
		"a Run that is cancelled":                    {workWith("codeflare.dev/v1alpha1", "Run", "a: b, cancel: true"), workWith("codeflare.dev/v1alpha1", "Run", "a: b"), ""},
		"a Run that is kept for longer":              {workWith("codeflare.dev/v1alpha1", "Run", "a: b, ttlSecondsAfterFinished: 9"), workWith("codeflare.dev/v1alpha1", "Run", "a: b"), ""},
		"a Run that becomes another one":             {workWith("codeflare.dev/v1alpha1", "Run", "a: c, cancel: true"), workWith("codeflare.dev/v1alpha1", "Run", "a: b"), "only cancel and ttlSecondsAfterFinished of its spec can be changed"},
		"an AppWrapper in another queue":             {strings.Replace(ofRun("r", "suspend: true"), "labels: {", "labels: {kueue.x-k8s.io/priority-class: p, ", 1), ofRun("r", "suspend: true"), ""},
		"a Deployment of nobody's":                   {workWith("apps/v1", "Deployment", "replicas: 2"), workWith("apps/v1", "Deployment", "replicas: 1"), ""},
		"a CronJob of nobody's":                      {workWith("batch/v1", "CronJob", "schedule: b"), workWith("batch/v1", "CronJob", "schedule: a"), ""},
		"a notebook of another product":              {workWith("kubeflow.org/v1", "Notebook", "n: 2"), workWith("kubeflow.org/v1", "Notebook", "n: 1"), ""},
		"a PodGroup of nobody's":                     {workWith("scheduling.x-k8s.io/v1alpha1", "PodGroup", "minMember: 2"), workWith("scheduling.x-k8s.io/v1alpha1", "PodGroup", "minMember: 1"), ""},
		"a pod that is described":                    {strings.Replace(podWith("n: 1"), "name: p", "name: p, annotations: {a: b}", 1), podWith("n: 1"), ""},
		"a pod without the label of its training":    {podWith("n: 1"), strings.Replace(podWith("n: 1"), "name: p", "name: p, labels: {training.kubeflow.org/job-name: j}", 1), "it is started: only controllers"},
		"a pod without the label of its replica set": {podWith("n: 1"), strings.Replace(podWith("n: 1"), "name: p", "name: p, labels: {pod-template-hash: j}", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(t, started, request{operation: admission.Update, object: c.object, old: c.old}, false)
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("want %q, got %q", c.want, got)
			}
			if got := judge(t, started, request{operation: admission.Update, object: c.object, old: c.old}, true); len(got) > 0 {
				t.Errorf("a controller is refused: %q", got)
			}
		})
	}
}
