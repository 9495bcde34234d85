// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kubeLinter are kube-linter's default rules (its docs/generated/checks.md), the equivalent
// rule of hardening_test.go, and a mistake that both detect.
var kubeLinter = map[string]struct {
	ours    string
	mistake func(*world, *appsv1.Deployment)
}{
	"dangling-service": {"dangling-service", func(w *world, _ *appsv1.Deployment) {
		w.services[0].Spec.Selector = map[string]string{"a": "b"}
	}},
	"deprecated-service-account-field": {"deprecated-service-account-field", func(_ *world, d *appsv1.Deployment) {
		d.Spec.Template.Spec.DeprecatedServiceAccount = "a"
	}},
	"docker-sock":             {"pod-security-restricted", hostPath("/var/run/docker.sock")},
	"drop-net-raw-capability": {"pod-security-restricted", first(func(c *corev1.Container) { c.SecurityContext.Capabilities.Drop = nil })},
	"duplicate-env-var": {"duplicate-env-var", first(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "A"}, {Name: "A"}}
	})},
	"env-var-secret": {"env-var-secret, read-secret-from-env-var", first(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "A_SECRET", Value: "a"}}
	})},
	"host-ipc":     {"pod-security-restricted", pod(func(p *corev1.PodSpec) { p.HostIPC = true })},
	"host-network": {"host-network", pod(func(p *corev1.PodSpec) { p.HostNetwork = true })},
	"host-pid":     {"pod-security-restricted", pod(func(p *corev1.PodSpec) { p.HostPID = true })},
	"invalid-target-ports": {"invalid-target-ports", func(w *world, _ *appsv1.Deployment) {
		w.services[0].Spec.Ports[0].TargetPort = intstr.FromString("nobodys")
	}},
	"job-ttl-seconds-after-finished": {"no Jobs, which would remain after their run", func(w *world, _ *appsv1.Deployment) {
		w.others = append(w.others, object{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}})
	}},
	"latest-tag": {"latest-tag", first(func(c *corev1.Container) { c.Image = "example.com/a:latest" })},
	"liveness-port": {"liveness-port, readiness-port, startup-port", first(func(c *corev1.Container) {
		c.LivenessProbe.HTTPGet.Port = intstr.FromString("nobodys")
	})},
	"mismatching-selector": {"mismatching-selector", func(_ *world, d *appsv1.Deployment) {
		d.Spec.Template.Labels = nil
	}},
	"no-anti-affinity": {"no-anti-affinity", pod(func(p *corev1.PodSpec) { p.TopologySpreadConstraints, p.Affinity = nil, nil })},
	"no-extensions-v1beta": {"no-extensions-v1beta", func(w *world, _ *appsv1.Deployment) {
		w.others = append(w.others, object{TypeMeta: metav1.TypeMeta{APIVersion: "extensions/v1beta1", Kind: "Ingress"}})
	}},
	"no-read-only-root-fs": {"no-read-only-root-fs", first(func(c *corev1.Container) { c.SecurityContext.ReadOnlyRootFilesystem = nil })},
	"non-existent-service-account": {"default-service-account, non-existent-service-account", pod(func(p *corev1.PodSpec) {
		p.ServiceAccountName = "nobody"
	})},
	"pdb-max-unavailable": {"pdb-max-unavailable, pdb-min-available", func(w *world, _ *appsv1.Deployment) {
		none := intstr.FromInt32(0)
		w.budgets[0].Spec.MinAvailable, w.budgets[0].Spec.MaxUnavailable = nil, &none
	}},
	"pdb-min-available": {"pdb-max-unavailable, pdb-min-available", func(w *world, d *appsv1.Deployment) {
		all := intstr.FromInt32(1)
		d.Spec.Replicas, w.budgets[0].Spec.MinAvailable = new(int32(1)), &all
	}},
	"pdb-unhealthy-pod-eviction-policy": {"pdb-unhealthy-pod-eviction-policy", func(w *world, _ *appsv1.Deployment) {
		w.budgets[0].Spec.UnhealthyPodEvictionPolicy = nil
	}},
	"privilege-escalation-container": {"pod-security-restricted", first(func(c *corev1.Container) { c.SecurityContext.AllowPrivilegeEscalation = nil })},
	"privileged-container":           {"pod-security-restricted", first(func(c *corev1.Container) { c.SecurityContext.Privileged = new(true) })},
	"readiness-port": {"liveness-port, readiness-port, startup-port", first(func(c *corev1.Container) {
		c.ReadinessProbe.HTTPGet.Port = intstr.FromString("nobodys")
	})},
	"run-as-non-root": {"pod-security-restricted", func(_ *world, d *appsv1.Deployment) {
		d.Spec.Template.Spec.SecurityContext.RunAsNonRoot = nil
		d.Spec.Template.Spec.Containers[0].SecurityContext.RunAsNonRoot = nil
	}},
	"sensitive-host-mounts": {"pod-security-restricted", hostPath("/etc")},
	"ssh-port": {"privileged-ports, ssh-port", first(func(c *corev1.Container) {
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 22})
	})},
	"startup-port": {"liveness-port, readiness-port, startup-port", first(func(c *corev1.Container) {
		c.StartupProbe = c.LivenessProbe.DeepCopy()
		c.StartupProbe.HTTPGet.Port = intstr.FromString("nobodys")
	})},
	"unsafe-sysctls": {"pod-security-restricted", pod(func(p *corev1.PodSpec) {
		p.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}
	})},
	"unset-cpu-requirements":    {"unset-cpu-requirements", first(func(c *corev1.Container) { delete(c.Resources.Requests, corev1.ResourceCPU) })},
	"unset-memory-requirements": {"unset-memory-requirements", first(func(c *corev1.Container) { delete(c.Resources.Limits, corev1.ResourceMemory) })},
}

// askedFor are kube-linter's optional rules: the equivalent rule, or why there is none.
var askedFor = map[string]string{
	"cluster-admin-role-binding": "cluster-admin-role-binding",
	"default-service-account":    "default-service-account, non-existent-service-account",
	"exposed-services":           "exposed-services",
	"no-liveness-probe":          "no-liveness-probe",
	"no-readiness-probe":         "no-readiness-probe",
	"non-isolated-pod":           "non-isolated-pod",
	"priority-class-name":        "priority-class-name",
	"privileged-ports":           "privileged-ports, ssh-port",
	"read-secret-from-env-var":   "env-var-secret, read-secret-from-env-var",
	"unsafe-proc-mount":          "pod-security-restricted",
	"wildcard-in-rules":          "wildcard-in-rules",
	"writable-host-mount":        "pod-security-restricted",

	"access-to-create-pods":                  "why not: operators need it",
	"access-to-secrets":                      "why not: KubeRay and Kueue read some; a separate rule checks writes",
	"dangling-horizontalpodautoscaler":       "why not: there is none",
	"dangling-ingress":                       "why not: there is none",
	"dangling-networkpolicy":                 "why not: non-isolated-pod finds a policy that misses its pod",
	"dangling-networkpolicypeer-podselector": "why not: policies name ports, not peers",
	"dangling-servicemonitor":                "why not: monitoring_test.go checks it",
	"dnsconfig-options":                      "why not: the cluster's settings are right",
	"hpa-minimum-three-replicas":             "why not: there is none",
	"minimum-three-replicas":                 "why not: one leads, the others stand by; two are enough",
	"no-node-affinity":                       "why not: nodeSelector and affinity are values",
	"no-rolling-update-strategy":             "why not: two schedulers with the same name must not run at the same time",
	"required-annotation-email":              "why not: Artifact Hub has the maintainers",
	"required-label-owner":                   "why not: the standard labels name the owner",
	"scc-deny-privileged-container":          "why not: there is none",
	"use-namespace":                          "why not: the release's, mlbatch-system",
}

func pod(change func(*corev1.PodSpec)) func(*world, *appsv1.Deployment) {
	return func(_ *world, d *appsv1.Deployment) { change(&d.Spec.Template.Spec) }
}

func first(change func(*corev1.Container)) func(*world, *appsv1.Deployment) {
	return pod(func(p *corev1.PodSpec) { change(&p.Containers[0]) })
}

func hostPath(path string) func(*world, *appsv1.Deployment) {
	return pod(func(p *corev1.PodSpec) {
		p.Volumes = append(p.Volumes, corev1.Volume{
			Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}},
		})
	})
}

func TestEveryRuleOfKubeLinterIsChecked(t *testing.T) {
	rendered, err := render(t, "appwrapper", values(t, must(os.ReadFile("testdata/appwrapper/production.in.yaml"))(t)))
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range kubeLinter {
		t.Run(name, func(t *testing.T) {
			w := build(t, rendered.Manifest)
			if broken := brokenRules(w); slices.Contains(broken, row.ours) {
				t.Fatalf("%s reports a mistake in a correct release", row.ours)
			}
			row.mistake(&w, &w.deployments[0])
			if broken := brokenRules(w); !slices.Contains(broken, row.ours) {
				t.Errorf("%s does not detect the mistake, which breaks %q", row.ours, broken)
			}
		})
	}
	for name, ours := range askedFor {
		if !strings.HasPrefix(ours, "why not: ") && !slices.Contains(ruleNames(), ours) {
			t.Errorf("%s: rule %s does not exist", name, ours)
		}
	}
}

func ruleNames() []string {
	var names []string
	for _, rule := range rules {
		names = append(names, rule.name)
	}
	for _, rule := range releaseRules {
		names = append(names, rule.name)
	}
	return names
}

func brokenRules(w world) []string {
	var broken []string
	for _, rule := range rules {
		for _, d := range w.deployments {
			if rule.wrong(w, d) != "" {
				broken = append(broken, rule.name)
			}
		}
	}
	for _, rule := range releaseRules {
		if len(rule.wrong(w)) > 0 {
			broken = append(broken, rule.name)
		}
	}
	return broken
}
