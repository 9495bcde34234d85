// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
)

// largest is about what etcd takes.
const largest = 1_500_000

// bombs are work of that size, suspended or not. Each is as expensive for some policy as its size allows.
func bombs() map[string]func(suspend bool) string {
	all := map[string]func(bool) string{
		"worker groups": ray(`"workerGroupSpecs":[` + fill(`{"groupName":"a"}`) + `]`),
		"amounts":       ray(`"headGroupSpec":{"resources":{` + keys(largest) + `}}`),
		"owners":        torch(`,"ownerReferences":[`+fill(`{"kind":"ConfigMap","name":"c"}`)+`]`, worker(`"nodeName":""`)),
		"finalizers":    torch(`,"finalizers":[`+fill(`"a/a"`)+`]`, worker(`"nodeName":""`)),
		"labels":        torch(`,"labels":{`+keys(largest)+`}`, worker(`"nodeName":""`)),
		// The API server allows 256 KiB of annotations.
		"annotations": torch(`,"annotations":{`+keys(largest/6)+`}`, worker(`"nodeName":""`)),
		"roles":       torch("", keyed(largest, `"%d":{}`)),
		"jobs":        jobSet(fill(`{"name":"a"}`)),
	}
	for name, spec := range map[string]string{
		"tolerations":     `"tolerations":[` + fill(`{"key":"nvidia.com/gpu"}`) + `]`,
		"containers":      `"containers":[` + fill(`{"name":"c"}`) + `]`,
		"init containers": `"initContainers":[` + fill(`{"name":"c"}`) + `]`,
		"volumes":         `"volumes":[` + fill(`{"name":"v"}`) + `]`,
		"sysctls":         `"securityContext":{"sysctls":[` + fill(`{"name":"kernel.shm_rmid_forced"}`) + `]}`,
		"files":           `"volumes":[{"name":"v","downwardAPI":{"items":[` + fill(`{"path":"v"}`) + `]}}]`,
		"sources":         `"volumes":[{"name":"v","projected":{"sources":[` + fill(`{"secret":{}}`) + `]}}]`,
		"projected files": `"volumes":[{"name":"v","projected":{"sources":[{"downwardAPI":{"items":[` + fill(`{"path":"v"}`) + `]}}]}}]`,
		"a long text":     `"priorityClassName":"` + strings.Repeat("a", largest) + `"`,
		"variables":       containerWith(`"env":[` + fill(`{"name":"c"}`) + `]`),
		"ports":           containerWith(`"ports":[` + fill(`{"hostPort":0}`) + `]`),
		"requests":        containerWith(`"resources":{"requests":{` + keys(largest) + `}}`),
		"a long amount":   containerWith(`"resources":{"requests":{"cpu":"` + strings.Repeat("1", largest) + `"}}`),
		"capabilities":    containerWith(`"securityContext":{"capabilities":{"add":[` + fill(`"KILL"`) + `]}}`),
	} {
		all[name] = torch("", worker(spec))
	}
	return all
}

func fill(entry string) string {
	return strings.Repeat(entry+",", largest/(len(entry)+1)-100) + entry
}

func keys(size int) string { return keyed(size, `"ray.io/%d":""`) }

// keyed are entries of a map, with a number in each.
func keyed(size int, format string) string {
	var b strings.Builder
	fmt.Fprintf(&b, format, 0)
	for i := 1; b.Len() < size; i++ {
		fmt.Fprintf(&b, ","+format, i)
	}
	return b.String()
}

func worker(spec string) string { return `"Worker":{"template":{"spec":{` + spec + `}}}` }

func containerWith(fields string) string { return `"containers":[{"name":"c",` + fields + `}]` }

func torch(metadata, roles string) func(suspend bool) string {
	return func(suspend bool) string {
		return fmt.Sprintf(`{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"j"%s},"spec":{"runPolicy":{"cleanPodPolicy":"Running","suspend":%t},"pytorchReplicaSpecs":{%s}}}`, metadata, suspend, roles)
	}
}

func ray(spec string) func(suspend bool) string {
	return func(suspend bool) string {
		return fmt.Sprintf(`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"r"},"spec":{"suspend":%t,%s}}`, suspend, spec)
	}
}

func jobSet(jobs string) func(suspend bool) string {
	return func(suspend bool) string {
		return fmt.Sprintf(`{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"s"},"spec":{"suspend":%t,"replicatedJobs":[%s]}}`, suspend, jobs)
	}
}

// A defence that can be made too expensive must not keep Kueue and operators from work, or anybody from ending it.
func TestKueueStopsTheLargestWork(t *testing.T) {
	platform := defences(t)
	for name, of := range bombs() {
		suspended, running := of(true), of(false)
		ends := request{operation: admission.Delete, old: running, options: "propagationPolicy: Background"}
		for what, r := range map[string]request{
			"it is stopped":  {operation: admission.Update, object: suspended, old: running},
			"it is started":  {operation: admission.Update, object: running, old: suspended},
			"its owner ends": ends,
		} {
			platform.afford(t, name+": "+what, r, true)
		}
		platform.afford(t, name+": its author ends it", ends, false)
	}
}

// afford fails the test for each policy that refuses the request, or cannot judge it within the API server's budget.
func (d defence) afford(t *testing.T, what string, r request, may bool) {
	t.Helper()
	r.labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "mlbatch-pod-security": "baseline"}
	r.annotations = map[string]string{"mlbatch-priorities": "low-priority", "mlbatch-tolerations": "nvidia.com/gpu"}
	judges := judging(d.rules, r.resourceOf(t), admissionregistration.OperationType(r.operation))
	if r.operation != admission.Delete {
		judges = append(judges, "mlbatch-wrapped")
	}
	for _, policy := range judges {
		mustAllow(t, what+": "+policy, decide(t, d.compiled[policy], r, may))
	}
}

// What no policy can judge for its size is refused with one sentence, which says what to write.
func TestWorkThatIsTooLargeIsRefusedWithASentence(t *testing.T) {
	platform := defences(t)
	want := map[string]string{
		"amounts":       "has at most 100 entries: remove the others",
		"owners":        "remove metadata.ownerReferences",
		"finalizers":    "more than 20 finalizers",
		"a long text":   "may not have the priority class aaa",
		"a long amount": "write it as 8, 500m, 1.5Gi or 1e3",
	}
	for name, of := range bombs() {
		r := request{operation: admission.Create, object: of(true)}
		r.labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
		r.annotations = map[string]string{"mlbatch-tolerations": "nvidia.com/gpu", "mlbatch-priorities": "low-priority"}
		var got []string
		for _, policy := range judging(platform.rules, r.resourceOf(t), admissionregistration.Create) {
			got = append(got, judge(t, platform.compiled[policy], r, false)...)
		}
		if want[name] == "" {
			want[name] = "at most 64 worker groups, roles or jobs, 400 containers"
		}
		if len(got) != 1 || !strings.Contains(got[0], want[name]) {
			t.Errorf("%s: want %q, got %.300q", name, want[name], got)
		}
	}
}

func mustAllow(t *testing.T, what string, decisions []validating.PolicyDecision) {
	t.Helper()
	for _, d := range decisions {
		if d.Evaluation == validating.EvalError || d.Action == validating.ActionDeny {
			t.Errorf("%s: %.300s", what, d.Message)
		}
	}
}
