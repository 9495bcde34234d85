// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Labels and annotations that charts/teams sets for teams with exceptions from baseline.
const (
	exceptedLabel                 = "mlbatch-pod-security"
	allowedCapabilitiesAnnotation = "mlbatch-allowed-capabilities"
	allowedHostPathsAnnotation    = "mlbatch-allowed-host-paths"
)

// securityContextsAnnotation is on all namespaces of OpenShift.
const securityContextsAnnotation = "openshift.io/sa.scc.uid-range"

// exceptedVersion is that of the level baseline in charts/mlbatch/templates/policies/pod-security.yaml.
var exceptedVersion = podsecurity.LevelVersion{Level: podsecurity.LevelBaseline, Version: podsecurity.MajorMinorVersion(1, 34)}

// podSecurity judges pods by the level that the namespace enforces.
func podSecurity(namespace Namespace, pod *corev1.PodTemplateSpec) string {
	level := levels(namespace).Enforce
	if wrong := violations(allChecks, level, pod); wrong != "" {
		return fmt.Sprintf("the namespace enforces the Pod Security level %s, and would refuse these pods: %s: "+
			"change that, or ask an administrator for another level", level.Level, wrong)
	}
	return ""
}

// podSecurityWarning judges pods by the level of which the namespace warns.
func podSecurityWarning(namespace Namespace, pod *corev1.PodTemplateSpec) string {
	level := levels(namespace).Warn
	if wrong := violations(allChecks, level, pod); wrong != "" {
		return fmt.Sprintf("these pods do not meet the Pod Security level %s: %s", level.Level, wrong)
	}
	return ""
}

// levels are those of the namespace. On OpenShift, where restricted asks for fields that are
// not set, the API server sets them.
func levels(namespace Namespace) podsecurity.Policy {
	privileged := podsecurity.LevelVersion{Level: podsecurity.LevelPrivileged, Version: podsecurity.LatestVersion()}
	found, _ := podsecurity.PolicyToEvaluate(namespace.Labels, podsecurity.Policy{Enforce: privileged, Audit: privileged, Warn: privileged})
	if _, filled := namespace.Annotations[securityContextsAnnotation]; filled {
		for _, level := range []*podsecurity.LevelVersion{&found.Enforce, &found.Warn} {
			if level.Level == podsecurity.LevelRestricted {
				level.Level = podsecurity.LevelBaseline
			}
		}
	}
	return found
}

// exceptedBaseline judges pods as the policy mlbatch-pod-security does: by the level baseline,
// except for the capabilities and folders of the node that the team is given.
func exceptedBaseline(namespace Namespace, pod *corev1.PodTemplateSpec) string {
	if !namespace.Policies.PodSecurity || namespace.Labels[exceptedLabel] != string(podsecurity.LevelBaseline) {
		return ""
	}
	wrong := []string{
		violations(checksWithExceptions, exceptedVersion, pod),
		excess("capabilities", addedCapabilities(&pod.Spec), namespace.Annotations[allowedCapabilitiesAnnotation]),
		excess("folders of the node", mountedHostPaths(&pod.Spec), namespace.Annotations[allowedHostPathsAnnotation]),
	}
	wrong = slices.DeleteFunc(wrong, func(s string) bool { return s == "" })
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("the namespace enforces the Pod Security level baseline with exceptions, and would refuse these pods: %s: "+
		"change that, or ask an administrator for an exception", strings.Join(wrong, ", "))
}

// excess names what is used without being allowed.
func excess(what string, used []string, allowed string) string {
	given := strings.Split(allowed, ",")
	used = slices.DeleteFunc(used, func(u string) bool { return slices.Contains(given, u) })
	if len(used) == 0 {
		return ""
	}
	slices.Sort(used)
	text := fmt.Sprintf("%s %s, where this team has ", what, strings.Join(slices.Compact(used), ", "))
	if allowed == "" {
		return text + "none"
	}
	return text + strings.Join(given, ", ")
}

// addedCapabilities are those that baseline does not allow.
func addedCapabilities(pod *corev1.PodSpec) []string {
	var added []string
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers, ephemeral(pod)) {
		if container.SecurityContext == nil || container.SecurityContext.Capabilities == nil {
			continue
		}
		for _, capability := range container.SecurityContext.Capabilities.Add {
			if !slices.Contains(harmlessCapabilities, string(capability)) {
				added = append(added, string(capability))
			}
		}
	}
	return added
}

var harmlessCapabilities = []string{"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
	"NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}

func ephemeral(pod *corev1.PodSpec) []corev1.Container {
	containers := make([]corev1.Container, len(pod.EphemeralContainers))
	for i := range pod.EphemeralContainers {
		containers[i] = corev1.Container(pod.EphemeralContainers[i].EphemeralContainerCommon)
	}
	return containers
}

func mountedHostPaths(pod *corev1.PodSpec) []string {
	var paths []string
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			paths = append(paths, volume.HostPath.Path)
		}
	}
	return paths
}

// oldestServer is the oldest API server that we support. What newer ones refuse in addition, they
// refuse when the pods are created.
var oldestServer = podsecurity.MajorMinorVersion(1, 30)

func violations(checks policy.Evaluator, level podsecurity.LevelVersion, pod *corev1.PodTemplateSpec) string {
	if level.Latest() {
		level.Version = oldestServer
	}
	result := policy.AggregateCheckResults(checks.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	return result.ForbiddenDetail()
}

// allChecks are those of the API server.
var allChecks = evaluator(policy.DefaultChecks())

// checksWithExceptions leave out those that exceptions are from.
var checksWithExceptions = evaluator(slices.DeleteFunc(policy.DefaultChecks(), func(c policy.Check) bool {
	return c.ID == policy.CheckCapabilitiesBaseline().ID || c.ID == policy.CheckHostPathVolumes().ID
}))

func evaluator(checks []policy.Check) policy.Evaluator {
	made, err := policy.NewEvaluator(checks, nil)
	if err != nil {
		panic(err) // its own checks contradict each other
	}
	return made
}
