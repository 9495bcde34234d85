// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	names "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// unreadPods are rules for pods that an operator makes of a template that the API server stores unread. They are those
// of k8s.io/kubernetes/pkg/apis/core/validation that do not depend on the version of the cluster. What has a default
// there may be left out.
var unreadPods = []func(in located, path *field.Path) field.ErrorList{
	wrongPolicies,
	wrongContainerValues,
	wrongSources,
	wrongTolerations,
	wrongAffinity,
}

func wrongUnreadPods(kind kinds.Kind, in located) field.ErrorList {
	if !kind.Known() || !strings.Contains(kind.GVK.Group, ".") {
		return nil // the API server judges the others when they are created, or with dry run before
	}
	path := in.path.Child("spec")
	problems := supported(path.Child("restartPolicy"), in.pod.Spec.RestartPolicy, kind.RestartPolicies()...)
	for _, rule := range unreadPods {
		problems = append(problems, rule(in, path)...)
	}
	return problems
}

// supported refuses another value than these. That there is none, is no fault.
func supported[T ~string](path *field.Path, value T, known ...T) field.ErrorList {
	if value == "" || len(known) == 0 || slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, known)}
}

// invalid refuses a value if something is wrong with it.
func invalid(path *field.Path, value any, wrong []string) field.ErrorList {
	if len(wrong) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, strings.Join(wrong, "; "))}
}

// optionalName refuses what is no name of an object. That there is none, other rules judge.
func optionalName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	return invalid(path, name, names.IsDNS1123Subdomain(name))
}

// sources are how many of the pointers in a struct lead somewhere: of a volume, a probe or a variable.
func sources(of any) (n int) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			n++
		}
	}
	return n
}

func wrongPolicies(in located, path *field.Path) field.ErrorList {
	spec := &in.pod.Spec
	problems := supported(path.Child("dnsPolicy"), spec.DNSPolicy, corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	return append(problems, optionalName(path.Child("serviceAccountName"), spec.ServiceAccountName)...)
}

func wrongContainerValues(in located, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	each := func(containers []corev1.Container, path *field.Path, rules ...func(*corev1.Container, *field.Path) field.ErrorList) {
		for i := range containers {
			for _, rule := range rules {
				problems = append(problems, rule(&containers[i], path.Index(i))...)
			}
		}
	}
	each(in.pod.Spec.InitContainers, path.Child("initContainers"), wrongImagePolicy, wrongPorts, wrongMounts, wrongVariables, wrongHandlers, probedInitContainer)
	each(in.pod.Spec.Containers, path.Child("containers"), wrongImagePolicy, wrongPorts, wrongMounts, wrongVariables, wrongHandlers)
	return problems
}

func wrongImagePolicy(c *corev1.Container, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if c.Image == "" {
		problems = append(problems, field.Required(path.Child("image"), "which image does the container run?"))
	}
	return append(problems, supported(path.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
}

func wrongPorts(c *corev1.Container, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i, port := range c.Ports {
		at := path.Child("ports").Index(i)
		problems = append(problems, invalid(at.Child("containerPort"), port.ContainerPort, names.IsValidPortNum(int(port.ContainerPort)))...)
		if port.HostPort != 0 {
			problems = append(problems, invalid(at.Child("hostPort"), port.HostPort, names.IsValidPortNum(int(port.HostPort)))...)
		}
		if port.Name != "" {
			problems = append(problems, invalid(at.Child("name"), port.Name, names.IsValidPortName(port.Name))...)
		}
		problems = append(problems, supported(at.Child("protocol"), port.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
	}
	return problems
}

func wrongMounts(c *corev1.Container, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	seen := map[string]bool{}
	for i, mount := range c.VolumeMounts {
		at := path.Child("volumeMounts").Index(i).Child("mountPath")
		if mount.MountPath == "" {
			problems = append(problems, field.Required(at, "where in the container?"))
		} else if seen[mount.MountPath] {
			problems = append(problems, field.Duplicate(at, mount.MountPath))
		}
		seen[mount.MountPath] = true
	}
	return problems
}

// ofThePod are what a variable can be filled with, beside labels and annotations.
var ofThePod = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

func wrongVariables(c *corev1.Container, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i, v := range c.Env {
		at := path.Child("env").Index(i).Child("valueFrom")
		switch {
		case v.ValueFrom == nil:
		case v.Value != "":
			problems = append(problems, field.Invalid(at, "", "leave it out, or the value: a variable has one of them"))
		case sources(*v.ValueFrom) != 1:
			problems = append(problems, field.Invalid(at, "", "must have one source, such as secretKeyRef"))
		default:
			problems = append(problems, wrongSource(v.ValueFrom, at)...)
		}
	}
	for i, from := range c.EnvFrom {
		at := path.Child("envFrom").Index(i)
		if sources(from) != 1 {
			problems = append(problems, field.Invalid(at, "", "must have either configMapRef or secretRef"))
		}
		if from.ConfigMapRef != nil {
			problems = append(problems, requiredName(at.Child("configMapRef", "name"), from.ConfigMapRef.Name)...)
		}
		if from.SecretRef != nil {
			problems = append(problems, requiredName(at.Child("secretRef", "name"), from.SecretRef.Name)...)
		}
	}
	return problems
}

func requiredName(path *field.Path, name string) field.ErrorList {
	return invalid(path, name, names.IsDNS1123Subdomain(name))
}

func wrongSource(from *corev1.EnvVarSource, path *field.Path) field.ErrorList {
	switch {
	case from.FieldRef != nil:
		return wrongFieldPath(from.FieldRef.FieldPath, path.Child("fieldRef", "fieldPath"))
	case from.ConfigMapKeyRef != nil:
		return wrongKey(from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, path.Child("configMapKeyRef"))
	case from.SecretKeyRef != nil:
		return wrongKey(from.SecretKeyRef.Name, from.SecretKeyRef.Key, path.Child("secretKeyRef"))
	}
	return nil
}

func wrongFieldPath(written string, path *field.Path) field.ErrorList {
	labelled := strings.HasSuffix(written, "']") && (strings.HasPrefix(written, "metadata.labels['") || strings.HasPrefix(written, "metadata.annotations['"))
	if labelled || slices.Contains(ofThePod, written) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, written, ofThePod)}
}

func wrongKey(name, key string, path *field.Path) field.ErrorList {
	return append(requiredName(path.Child("name"), name), invalid(path.Child("key"), key, names.IsConfigMapKey(key))...)
}

// wrongHandlers is about probes and hooks.
func wrongHandlers(c *corev1.Container, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for name, probe := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		if probe != nil {
			h := probe.ProbeHandler
			problems = append(problems, wrongHandler(path.Child(name), sources(h), h.Exec, h.HTTPGet, h.TCPSocket)...)
		}
	}
	if c.Lifecycle != nil {
		for name, h := range map[string]*corev1.LifecycleHandler{"postStart": c.Lifecycle.PostStart, "preStop": c.Lifecycle.PreStop} {
			if h != nil {
				problems = append(problems, wrongHandler(path.Child("lifecycle", name), sources(*h), h.Exec, h.HTTPGet, h.TCPSocket)...)
			}
		}
	}
	slices.SortFunc(problems, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return problems
}

func wrongHandler(path *field.Path, handlers int, exec *corev1.ExecAction, get *corev1.HTTPGetAction, tcp *corev1.TCPSocketAction) field.ErrorList {
	switch {
	case handlers != 1:
		return field.ErrorList{field.Invalid(path, "", fmt.Sprintf("must have one handler, such as exec or httpGet, and has %d", handlers))}
	case exec != nil && len(exec.Command) == 0:
		return field.ErrorList{field.Required(path.Child("exec", "command"), "which command?")}
	case get != nil:
		return wrongPort(path.Child("httpGet", "port"), get.Port)
	case tcp != nil:
		return wrongPort(path.Child("tcpSocket", "port"), tcp.Port)
	}
	return nil
}

func wrongPort(path *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.String {
		return invalid(path, port.StrVal, names.IsValidPortName(port.StrVal))
	}
	return invalid(path, port.IntVal, names.IsValidPortNum(int(port.IntVal)))
}

// probedInitContainer: only a side-car runs long enough for that.
func probedInitContainer(c *corev1.Container, path *field.Path) field.ErrorList {
	if c.RestartPolicy == nil && (c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil || c.Lifecycle != nil) {
		return field.ErrorList{field.Forbidden(path, "an init container has no probes and no lifecycle, unless its restartPolicy is Always")}
	}
	return nil
}

// wrongSources: a volume without a source is an emptyDir.
func wrongSources(in located, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i, v := range in.pod.Spec.Volumes {
		at := path.Child("volumes").Index(i)
		if sources(v.VolumeSource) > 1 {
			problems = append(problems, field.Invalid(at, v.Name, "must have one source"))
		} else if missing := missingSource(&v.VolumeSource); len(missing) > 0 {
			problems = append(problems, field.Required(at.Child(missing[0], missing[1:]...), "what is in the volume?"))
		}
	}
	return problems
}

// missingSource is the field that says where the data of a volume is, if it is empty.
func missingSource(v *corev1.VolumeSource) []string {
	switch {
	case v.Secret != nil && v.Secret.SecretName == "":
		return []string{"secret", "secretName"}
	case v.ConfigMap != nil && v.ConfigMap.Name == "":
		return []string{"configMap", "name"}
	case v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "":
		return []string{"persistentVolumeClaim", "claimName"}
	case v.HostPath != nil && v.HostPath.Path == "":
		return []string{"hostPath", "path"}
	}
	return nil
}
