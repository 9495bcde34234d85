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
	fill := func(entry string) string { return strings.Repeat(entry+",", largest/(len(entry)+1)-100) + entry }
	job := func(suspend bool, metadata, roles string) string {
		return fmt.Sprintf(`{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"j"%s},"spec":{"runPolicy":{"cleanPodPolicy":"Running","suspend":%t},"pytorchReplicaSpecs":{%s}}}`, metadata, suspend, roles)
	}
	worker := func(spec string) string { return `"Worker":{"template":{"spec":{` + spec + `}}}` }
	ray := func(suspend bool, spec string) string {
		return fmt.Sprintf(`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"r"},"spec":{"suspend":%t,%s}}`, suspend, spec)
	}
	keys := func(size int) string {
		var b strings.Builder
		b.WriteString(`"a":""`)
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, `,"ray.io/%d":""`, i)
		}
		return b.String()
	}
	return map[string]func(bool) string{
		"capabilities": func(s bool) string {
			return job(s, "", worker(`"containers":[{"name":"c","securityContext":{"capabilities":{"add":[`+fill(`"KILL"`)+`]}}}]`))
		},
		"tolerations": func(s bool) string {
			return job(s, "", worker(`"tolerations":[`+fill(`{"key":"nvidia.com/gpu"}`)+`]`))
		},
		"owners": func(s bool) string {
			return job(s, `,"ownerReferences":[`+fill(`{"kind":"ConfigMap","name":"c"}`)+`]`, worker(`"nodeName":""`))
		},
		"worker groups": func(s bool) string { return ray(s, `"workerGroupSpecs":[`+fill(`{"groupName":"a"}`)+`]`) },
		// The API server allows 256 KiB of annotations.
		"annotations": func(s bool) string {
			return job(s, `,"annotations":{`+keys(largest/6)+`}`, worker(`"nodeName":""`))
		},
		"requests": func(s bool) string {
			return job(s, "", worker(`"containers":[{"name":"c","resources":{"requests":{`+keys(largest)+`}}}]`))
		},
		"amounts":    func(s bool) string { return ray(s, `"headGroupSpec":{"resources":{`+keys(largest)+`}}`) },
		"finalizers": func(s bool) string { return job(s, `,"finalizers":[`+fill(`"a/a"`)+`]`, worker(`"nodeName":""`)) },
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
	if len(judges) == 0 {
		t.Errorf("%s: nobody judges it", what)
	}
	for _, policy := range judges {
		mustAllow(t, what+": "+policy, decide(t, d.compiled[policy], r, may))
	}
}

// What no policy can judge for its size is refused with a sentence that says what to write.
func TestWorkThatIsTooLargeIsRefusedWithASentence(t *testing.T) {
	platform, all := defences(t), bombs()
	for name, c := range map[string]struct{ policy, want string }{
		"capabilities": {"mlbatch-pod-security", "at most 64 capabilities each"},
		"requests":     {"mlbatch-growth", "has at most 100 entries: remove the others"},
		"amounts":      {"mlbatch-growth", "has at most 100 entries: remove the others"},
		"tolerations":  {"mlbatch-placement", "at most 64 tolerations"},
		"owners":       {"mlbatch-ownership", "remove metadata.ownerReferences"},
		"finalizers":   {"mlbatch-lifecycle", "more than 20 finalizers"},
	} {
		r := request{operation: admission.Create, object: all[name](true)}
		r.labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
		r.annotations = map[string]string{"mlbatch-tolerations": "nvidia.com/gpu"}
		if got := judge(t, platform.compiled[c.policy], r, false); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: want %q, got %.300q", name, c.want, got)
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
