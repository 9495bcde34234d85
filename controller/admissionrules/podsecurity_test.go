// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

const (
	enforce = "pod-security.kubernetes.io/enforce"
	warn    = "pod-security.kubernetes.io/warn"
)

// charts/policies_test.go has what the exceptions of a team allow.
func TestPodsAreHeldToTheLevelOfTheirNamespace(t *testing.T) {
	const (
		privileged = `{name: c, image: i, securityContext: {privileged: true}}`
		host       = "spec.components[0].template.spec.template: Forbidden: the namespace enforces the Pod Security level "
	)
	levels := func(keysAndValues ...string) map[string]string {
		labels := map[string]string{}
		for i := 0; i < len(keysAndValues); i += 2 {
			labels[keysAndValues[i]] = keysAndValues[i+1]
		}
		return labels
	}
	withContainer := func(c string) string { return component(strings.Replace(job, "{name: c, image: i}", c, 1)) }
	for name, tc := range map[string]struct {
		component     string
		namespace     Namespace
		refused, says string // parts of the sentence
	}{
		"a container with all rights": {withContainer(privileged), Namespace{Labels: levels(enforce, "baseline")},
			host + "baseline", `(container "c" must not set securityContext.privileged=true): change that, or ask an administrator for another level`},
		"where nothing is enforced":      {withContainer(privileged), Namespace{}, "", ""},
		"where everything is allowed":    {withContainer(privileged), Namespace{Labels: levels(enforce, "privileged")}, "", ""},
		"where it is a warning":          {withContainer(privileged), Namespace{Labels: levels(warn, "baseline")}, "", ""},
		"ordinary pods":                  {component(job), Namespace{Labels: levels(enforce, "baseline")}, "", ""},
		"ordinary pods where more wants": {component(job), Namespace{Labels: levels(enforce, "restricted")}, host + "restricted", "runAsNonRoot"},
		"ordinary pods on OpenShift":     {component(job), Namespace{Labels: levels(enforce, "restricted"), Annotations: levels("openshift.io/sa.scc.uid-range", "1/2")}, "", ""},
		"all rights on OpenShift": {withContainer(privileged), Namespace{Labels: levels(enforce, "restricted"), Annotations: levels("openshift.io/sa.scc.uid-range", "1/2")},
			host + "baseline", "privileged"},
		"a level that does not exist is the strictest": {component(job), Namespace{Labels: levels(enforce, "basline")}, host + "restricted", ""},
		"a version before hosts of probes counted": {withContainer(`{name: c, image: i, livenessProbe: {tcpSocket: {host: a, port: 1}}}`),
			Namespace{Labels: levels(enforce, "baseline", enforce+"-version", "v1.33")}, "", ""},
		"the latest version, which is another one on an older API server": {withContainer(`{name: c, image: i, livenessProbe: {tcpSocket: {host: a, port: 1}}}`),
			Namespace{Labels: levels(enforce, "baseline")}, "", ""},
		"one after": {withContainer(`{name: c, image: i, livenessProbe: {tcpSocket: {host: a, port: 1}}}`),
			Namespace{Labels: levels(enforce, "baseline", enforce+"-version", "v1.34")}, host + "baseline", "probe"},
		"both roles of a PyTorchJob, in one sentence": {component(strings.ReplaceAll(pyTorchJob, "containers:", "hostPID: true, containers:")),
			Namespace{Labels: levels(enforce, "baseline")},
			"spec.components[0].template.spec.pytorchReplicaSpecs.Master.template: Forbidden: ", "(hostPID=true): change that, or ask an administrator for another level (and 1 more like this)"},
		"an exception that the policy does not enforce": {withContainer(privileged), Namespace{Labels: levels("mlbatch-pod-security", "baseline")}, "", ""},
		"a capability that the team does not have": {withContainer(`{name: c, image: i, securityContext: {capabilities: {add: [SYS_ADMIN, IPC_LOCK]}}}`),
			Namespace{Labels: levels("mlbatch-pod-security", "baseline"), Annotations: levels("mlbatch-allowed-capabilities", "IPC_LOCK"), Policies: Policies{PodSecurity: true}},
			host + "baseline with exceptions", "capabilities SYS_ADMIN, where this team has IPC_LOCK: change that, or ask an administrator for an exception"},
		"what is no pod set, which another rule refuses": {declared("[{path: template.spec.nowhere}]", custom), Namespace{Labels: levels(enforce, "restricted")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems := Decode(appWrapper(t, tc.component)).ValidateIn(tc.namespace)
			if tc.refused == "" {
				if len(problems) > 0 {
					t.Errorf("unexpected: %v", problems)
				}
				return
			}
			if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), tc.refused) || !strings.Contains(problems[0].Error(), tc.says) {
				t.Errorf("got %v, want %s…%s", problems, tc.refused, tc.says)
			}
		})
	}
}

func TestOneWarningForAllPodsBelowALevel(t *testing.T) {
	namespace := Namespace{Labels: map[string]string{warn: "restricted", enforce: "baseline"}}
	got := Decode(appWrapper(t, component(pyTorchJob), component(job))).WarningsOnPods(namespace)
	const want = "spec.components[0].template.spec.pytorchReplicaSpecs.Master.template: these pods do not meet the Pod Security level restricted: "
	if len(got) != 1 || !strings.HasPrefix(got[0], want) || !strings.HasSuffix(got[0], "(and 2 more like this)") {
		t.Errorf("got %q", got)
	}
	if got := Decode(appWrapper(t, component(job))).WarningsOnPods(Namespace{}); len(got) > 0 {
		t.Errorf("without a level: %q", got)
	}
}
