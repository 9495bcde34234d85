// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// pods has the first cause of each pod. Of those that failed, the first to fail comes first.
func pods(o Objects) (all []Cause) {
	if o.isWell() && o.Ended() {
		return nil
	}
	finders := []func(Objects, *corev1.Pod) []Cause{unscheduled, disrupted, rejected, containers, mounts, preparing, unready}
	byEnd := slices.Clone(o.Pods)
	slices.SortStableFunc(byEnd, func(a, b corev1.Pod) int { return cmp.Compare(firstEnd(a), firstEnd(b)) })
	if o.isWell() { // what failed or leaves was replaced; and PodsReady says only that pods run
		byEnd = slices.DeleteFunc(byEnd, func(p corev1.Pod) bool { return !lives(&p) })
	}
	for i := range byEnd {
		for _, find := range finders {
			if found := find(o, &byEnd[i]); len(found) > 0 {
				all = append(all, found...)
				break
			}
		}
	}
	if o.isWell() && len(o.living()) > 0 { // PodsReady keeps its word until the next wave of a Job is late
		return append(all, o.notSubmitted()...)
	}
	return append(all, o.podRefused()...)
}

// firstEnd is when the first container of a pod failed. Pods of which none did come last.
func firstEnd(pod corev1.Pod) int64 {
	first := int64(math.MaxInt64)
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if end := endOf(s); end != nil && end.ExitCode != 0 {
			first = min(first, end.FinishedAt.Unix())
		}
	}
	return first
}

// isWell: all pods are ready, or the work is done.
func (o Objects) isWell() bool {
	if aw := o.AppWrapper; aw != nil {
		return aw.Status.Phase == v1beta2.AppWrapperSucceeded || isTrue(aw.Status.Conditions, string(v1beta2.PodsReady))
	}
	if o.Workload == nil {
		return false
	}
	c := condition(o.Workload.Status.Conditions, kueue.WorkloadFinished)
	return isTrue(o.Workload.Status.Conditions, kueue.WorkloadPodsReady) || c != nil && c.Reason == kueue.WorkloadFinishedReasonSucceeded
}

// waits are the reasons with which the kubelet says that a container waits.
var waits = map[string]Code{
	"ErrImagePull": "ImageNotPulled", "ImagePullBackOff": "ImageNotPulled", "RegistryUnavailable": "ImageNotPulled", "SignatureValidationFailed": "ImageNotPulled",
	"InvalidImageName": "ImageNameInvalid", "ErrImageNeverPull": "ImageNeverPulled",
	"CreateContainerConfigError": "ConfigMissing",
	"CreateContainerError":       "ContainerNotCreated", "RunContainerError": "ContainerNotCreated",
	"CrashLoopBackOff": "CrashLoop",
}

// images are what container runtimes say of images. What a registry denies, it may not have.
var images = []phrase{
	{"WrongArchitecture", []string{"no match for platform in manifest"}},
	{"RegistryLimit", []string{"toomanyrequests", "429 Too Many Requests"}},
	{"ImagePullDenied", []string{"unauthorized", "authorization failed", "insufficient_scope", "denied", "401 Unauthorized", "403 Forbidden", "no basic auth credentials"}},
	{"RegistryUnreachable", []string{"no such host", "connection refused", "i/o timeout", "TLS handshake timeout", "no route to host", "x509: ", "server gave HTTP response to HTTPS client"}},
	{"ImageMissing", []string{"not found", "manifest unknown", "name unknown"}},
}

// commands are what container runtimes say of programs that they cannot start.
var commands = []phrase{
	{"WrongArchitecture", []string{"exec format error"}},
	{"CommandMissing", []string{`exec: "`}},
}

// configs are what a kubelet says of containers that it does not create for another reason than a missing object.
var configs = []phrase{
	{"ContainerNotCreated", []string{"runAsNonRoot", "non-root policy", "subPath"}},
}

func containers(o Objects, pod *corev1.Pod) []Cause {
	for i, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		object := "container " + status.Name + " of Pod " + pod.Name
		code, known := waitingFor(status.State.Waiting)
		if known && code != "CrashLoop" {
			return []Cause{waitingCause(code, object, status)}
		}
		ended := o.endedContainer(pod, status, i < len(pod.Status.InitContainerStatuses))
		if known {
			return inLoop(waitingCause(code, object, status), ended)
		}
		if len(ended) > 0 {
			return ended
		}
	}
	return nil
}

// endedContainer is about a container that ended with an error, and does not run again, or not for long.
func (o Objects) endedContainer(pod *corev1.Pod, status corev1.ContainerStatus, first bool) []Cause {
	object, end := "container "+status.Name+" of Pod "+pod.Name, endOf(status)
	if end == nil && o.crashLoops() {
		end = status.LastTerminationState.Terminated
	}
	if end == nil || end.ExitCode == 0 && end.Reason != "OOMKilled" {
		return nil
	}
	if found := o.podEvents(pod, "FailedPostStartHook"); len(found) > 0 { // the node has ended the container for that
		return []Cause{cause("HookFailed", found[len(found)-1], also(Evidence{object, "exitCode", strconv.Itoa(int(end.ExitCode))}))}
	}
	return []Cause{terminated(object, *end, first, ranked(pod))}
}

// crashLoops: the controller has seen containers end again and again. One of them may run just now.
func (o Objects) crashLoops() bool {
	if o.AppWrapper == nil {
		return false
	}
	c := condition(o.AppWrapper.Status.Conditions, string(v1beta2.Unhealthy))
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1beta2.ReasonCrashLoop
}

// inLoop adds how a container ended that ends again and again. If that says more than that its program failed, it comes
// first.
func inLoop(loop Cause, ended []Cause) []Cause {
	if len(ended) == 0 || ended[0].Code == "ProgramFailed" || ended[0].Code == "InitFailed" {
		return append([]Cause{loop}, ended...)
	}
	return append(ended, loop)
}

// endOf is how a container ended, or ended the last time if it is not running now.
func endOf(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if status.State.Terminated == nil && status.State.Running == nil {
		return status.LastTerminationState.Terminated
	}
	return status.State.Terminated
}

func waitingCause(code Code, object string, status corev1.ContainerStatus) Cause {
	w := status.State.Waiting
	c := cause(code, Evidence{object, "waiting, " + w.Reason, cmp.Or(w.Message, w.Reason)})
	if status.Image != "" && slices.Contains(imageCodes, code) {
		also(Evidence{object, "image", status.Image})(&c)
	}
	return c
}

// imageCodes are causes that are about the name of an image.
var imageCodes = []Code{"ImageNotPulled", "ImageNameInvalid", "ImageNeverPulled", "WrongArchitecture", "RegistryLimit", "ImagePullDenied", "RegistryUnreachable", "ImageMissing"}

func waitingFor(w *corev1.ContainerStateWaiting) (Code, bool) {
	if w == nil {
		return "", false
	}
	code, known := waits[w.Reason]
	switch code {
	case "ImageNotPulled":
		code = sorted(w.Message, images, code)
	case "ConfigMissing":
		code = sorted(w.Message, configs, code)
	case "ContainerNotCreated":
		code = sorted(w.Message, commands, code)
	}
	return code, known
}

// labelsOfRanks are the labels with which owners number pods.
var labelsOfRanks = []string{
	"batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index", "leaderworkerset.sigs.k8s.io/worker-index", "apps.kubernetes.io/pod-index",
}

// ranked adds which of several pods one is.
func ranked(pod *corev1.Pod) change {
	return func(c *Cause) {
		for _, label := range labelsOfRanks {
			if value := pod.Labels[label]; value != "" {
				also(Evidence{"Pod " + pod.Name, "label " + label, value})(c)
				return
			}
		}
	}
}

// lastLines is the field of the evidence with what a program printed last.
const lastLines = "last lines"

func terminated(object string, end corev1.ContainerStateTerminated, first bool, more change) Cause {
	code := endedWith(end.ExitCode, end.Reason, end.Message)
	if first && code == "ProgramFailed" {
		code = "InitFailed"
	}
	c := cause(code, Evidence{object, "exitCode", strconv.Itoa(int(end.ExitCode))}, since(end.FinishedAt))
	if end.Reason != "" {
		also(Evidence{object, "reason", end.Reason})(&c)
	}
	if message := strings.TrimSpace(end.Message); message != "" {
		also(Evidence{object, lastLines, message})(&c)
	}
	more(&c)
	return c
}

// exits are exit codes that say more than that something failed. A shell says with 126 and 127 that it found no
// program, and adds the number of a signal to 128.
var exits = map[int32]Code{
	126: "CommandMissing", 127: "CommandMissing",
	128 + 9: "ProgramKilled", 128 + 15: "ProgramKilled", // SIGKILL, SIGTERM
	128 + 4: "ProgramCrashed", 128 + 5: "ProgramCrashed", 128 + 6: "ProgramCrashed", // illegal instruction, trap, abort
	128 + 7: "ProgramCrashed", 128 + 8: "ProgramCrashed", 128 + 11: "ProgramCrashed", // bus, arithmetic, segmentation
}

// notStarted is the exit code that container runtimes give to a program that they cannot start.
const notStarted = 128

// endedWith sorts how a container ended.
func endedWith(exitCode int32, reason, message string) Code {
	switch {
	case reason == "OOMKilled":
		return "OutOfMemory"
	case hasAny(message, "exec format error"):
		return "WrongArchitecture"
	case reason == "StartError" || reason == "ContainerCannotRun" || exitCode == notStarted && hasAny(message, `exec: "`):
		return "CommandMissing"
	}
	if code, known := exits[exitCode]; known {
		return code
	}
	return "ProgramFailed"
}

// mounts is about pods on a node whose volumes are not there.
func mounts(o Objects, pod *corev1.Pod) []Cause {
	if pod.Status.Phase != corev1.PodPending {
		return nil
	}
	found := o.podEvents(pod, "FailedMount", "FailedAttachVolume")
	if len(found) == 0 {
		return nil
	}
	last := found[len(found)-1]
	if hasAny(last.Value, "configmap", "secret") {
		return []Cause{cause("ConfigMissing", last)}
	}
	return []Cause{cause("VolumeNotBound", last)}
}

// complete: all pods of an AppWrapper have been created, and have not failed.
func (o Objects) complete() bool {
	if o.AppWrapper == nil {
		return false
	}
	all, there := int32(0), int32(0)
	for _, component := range o.AppWrapper.Status.ComponentStatus {
		all += expected(component)
	}
	for i := range o.Pods {
		counted := o.Pods[i].Labels[v1beta2.AppWrapperLabel] != "" || !o.submits(&o.Pods[i])
		if o.Pods[i].Status.Phase != corev1.PodFailed && o.Pods[i].DeletionTimestamp == nil && counted {
			there++
		}
	}
	return all > 0 && there >= all
}
