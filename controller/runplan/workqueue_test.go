// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// brokerOf is the template of the broker of a Run.
func brokerOf(t *testing.T, in runplan.Input) corev1.PodTemplateSpec {
	t.Helper()
	planned, problems := runplan.Plan(in)
	if planned == nil {
		t.Fatal(problems)
	}
	for _, p := range decoded(t, planned.AppWrapper) {
		if p.template.Labels[v1alpha1.RoleLabel] == runplan.BrokerRole {
			return p.template
		}
	}
	t.Fatal("there is no broker")
	return corev1.PodTemplateSpec{}
}

// Whatever the program needs, the broker is a pod that every namespace admits.
func TestBrokersMeetTheStrictestPodSecurity(t *testing.T) {
	restricted, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, dataSet := range []string{"pvc", "s3"} {
		for _, user := range []*int64{nil, id(0), id(1000)} {
			in := queueInput()
			in.Run.Spec.Queue.DataSet.Name = dataSet
			in.Application.Spec.SecurityContext = &v1alpha1.SecurityContext{RunAsUser: user}
			pod := brokerOf(t, in)
			level := podsecurityapi.LevelVersion{Level: podsecurityapi.LevelRestricted, Version: podsecurityapi.LatestVersion()}
			wrong := policy.AggregateCheckResults(restricted.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
			if !wrong.Allowed {
				t.Errorf("with the user %v on %s: %s", user, dataSet, wrong.ForbiddenDetail())
			}
		}
	}
}

// Files belong to whom the program runs as, and the group of the Application comes before the
// platform's.
func TestTheBrokerWritesAsTheProgramDoes(t *testing.T) {
	for name, row := range map[string]struct {
		asked                   *v1alpha1.SecurityContext
		user, group, ofPlatform *int64
	}{
		"nobody chose":          {nil, nil, id(65532), id(65532)},
		"OpenShift chooses":     {nil, nil, nil, nil},
		"a user":                {&v1alpha1.SecurityContext{RunAsUser: id(1000)}, id(1000), id(65532), id(65532)},
		"root, who is no agent": {&v1alpha1.SecurityContext{RunAsUser: id(0)}, nil, id(65532), id(65532)},
		"a group":               {&v1alpha1.SecurityContext{FSGroup: id(7)}, nil, id(7), id(65532)},
	} {
		t.Run(name, func(t *testing.T) {
			in := queueInput()
			in.Application.Spec.SecurityContext, in.Settings.BrokerFSGroup = row.asked, row.ofPlatform
			pod := brokerOf(t, in).Spec
			for what, is := range map[string][2]*int64{
				"the user":                  {row.user, pod.SecurityContext.RunAsUser},
				"the user of the container": {nil, pod.Containers[0].SecurityContext.RunAsUser},
				"the group":                 {row.group, pod.SecurityContext.FSGroup},
			} {
				if want, got := is[0], is[1]; (want == nil) != (got == nil) || want != nil && *want != *got {
					t.Errorf("%s is another one", what)
				}
			}
		})
	}
}
