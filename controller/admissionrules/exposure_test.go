// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// charts/policies_test.go has what is refused, for the policy and for this rule.
func TestNothingThatIsWrappedOpensADoor(t *testing.T) {
	team := map[string]string{"mlbatch-team-namespace": "true"}
	judged := Namespace{Labels: team, Policies: Policies{Exposure: true}}
	const open = `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: NodePort, externalIPs: [192.0.2.1]}}`
	for name, tc := range map[string]struct {
		template  string
		namespace Namespace
		want      []string
	}{
		"two doors": {open, judged, []string{"spec.components[1].template.spec.type", "spec.components[1].template.spec.externalIPs"}},
		"a Service of Ray's": {`{apiVersion: ray.io/v1, kind: RayService, metadata: {name: r}, spec: {serveService: {spec: {type: LoadBalancer}}}}`, judged,
			[]string{"spec.components[1].template.spec.serveService.spec.type"}},
		"a Secret with a token":    {`{apiVersion: v1, kind: Secret, metadata: {name: s}, type: kubernetes.io/service-account-token}`, judged, []string{"spec.components[1].template.type"}},
		"no door":                  {strings.NewReplacer("NodePort", "ClusterIP", "192.0.2.1", "").Replace(open), judged, nil},
		"another kind":             {strings.Replace(open, "apiVersion: v1", "apiVersion: serving.knative.dev/v1", 1), judged, nil},
		"a field of another type":  {strings.Replace(open, "type: NodePort, externalIPs: [192.0.2.1]", "type: {NodePort: true}, externalIPs: all", 1), judged, nil},
		"a namespace of no team":   {open, Namespace{Policies: Policies{Exposure: true}}, nil},
		"a policy that is not set": {open, Namespace{Labels: team}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, problem := range Decode(appWrapper(t, component(job), component(tc.template))).ValidateIn(tc.namespace) {
				got = append(got, problem.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
