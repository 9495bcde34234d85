// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"strings"
	"testing"

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
	keys := func() string {
		var b strings.Builder
		b.WriteString(`"a":""`)
		for i := 0; b.Len() < largest/6; i++ { // the API server allows 256 KiB of annotations
			fmt.Fprintf(&b, `,"ray.io/%d":""`, i)
		}
		return b.String()
	}
	return map[string]func(bool) string{
		"capabilities": func(s bool) string {
			return job(s, "", worker(`"containers":[{"name":"c","securityContext":{"capabilities":{"add":[`+fill(`"KILL"`)+`]}}}]`))
		},
		"worker groups": func(s bool) string { return ray(s, `"workerGroupSpecs":[`+fill(`{"groupName":"a"}`)+`]`) },
		"annotations":   func(s bool) string { return job(s, `,"annotations":{`+keys()+`}`, worker(`"nodeName":""`)) },
		"finalizers":    func(s bool) string { return job(s, `,"finalizers":[`+fill(`"a/a"`)+`]`, worker(`"nodeName":""`)) },
	}
}

// A defence that can be made too expensive must not keep Kueue from work, or anybody from ending it.
func TestKueueStopsTheLargestWork(t *testing.T) {
	compiled := policies(t)
	for name, of := range bombs() {
		stopped, running := of(true), of(false)
		for policy, p := range compiled {
			r := request{operation: admission.Update, object: stopped, old: running}
			r.labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "mlbatch-pod-security": "baseline"}
			r.annotations = map[string]string{"mlbatch-priorities": "low-priority", "mlbatch-tolerations": "nvidia.com/gpu"}
			if matches(policy, request{operation: admission.Update, object: "kind: PyTorchJob,"}) {
				mustAllow(t, name+": Kueue stops it: "+policy, decide(t, p, r, true))
			}
		}
		ends := request{operation: admission.Delete, old: running, options: "propagationPolicy: Background"}
		mustAllow(t, name+": its author ends it", decide(t, compiled["mlbatch-lifecycle"], ends, false))
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
