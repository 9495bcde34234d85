// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"regexp"
	"strings"
)

// allowedFields are all fields in which the pods of a wrapped object may differ from those of the bare one, and why.
var allowedFields = []struct{ path, because string }{
	{`\.labels\.(workload\.codeflare\.dev|kueue\.x-k8s\.io)/.*`, "the AppWrapper and the queue are written onto pods"},
	{`\.annotations\.(workload\.codeflare\.dev|kueue\.x-k8s\.io)/.*`, "the same"},
	{`\.labels\.(.*controller-uid|pod-template-hash|controller-revision-hash|.*-hash|.*-key|.*-uid|.*/job-id)`, "follows from the template or the object's UID"},
	{`\.annotations\.(.*-hash|.*-key)`, "the same"},
	{`\.spec\.schedulerName`, "gangs have a scheduler of their own"},
	{`\.spec\.(nodeSelector|tolerations)\b.*`, "podSetInfos: Kueue's flavor"},
	{`\.spec\.affinity\b.*`, "avoided nodes, and the anti-affinity of bad ones"},
	{`\.spec\.(initContainers|containers)\[\d+\]\.terminationMessagePolicy`, "the last words of a program are its log"},
	{`\.spec\.(nodeName|priority|preemptionPolicy)`, "decided by the scheduler and the priority"},
}

// allowed reports whether pods may differ in a field.
func allowed(path string) bool {
	for _, a := range allowedFields {
		if regexp.MustCompile(`^` + a.path + `$`).MatchString(path) {
			return true
		}
	}
	return false
}

// allowedOutcomes are all pairs of outcomes, of the bare and of the wrapped object, that may differ, and why.
var allowedOutcomes = map[[2]Outcome]string{
	{Unready, Ready}:   "an AppWrapper has PodsReady once its pods run, as in v1.2: readiness is for Services",
	{NotReady, Failed}: "what never gets ready, or crash-loops longer than the grace, holds quota for nothing: it is ended",
}

// outcomeDiffers compares outcomes. Endless reports that the bare object would go on without end, so that counts
// differ.
func outcomeDiffers(bare, wrapped Summary) (difference string, endless bool) {
	if bare.Outcome == wrapped.Outcome {
		return "", bare.Outcome == NotReady
	}
	if _, ok := allowedOutcomes[[2]Outcome{bare.Outcome, wrapped.Outcome}]; ok {
		return "", bare.Outcome == NotReady
	}
	return fmt.Sprintf("bare it is %s, wrapped %s", bare.Outcome, wrapped.Outcome), false
}

// failedAlike reports whether two objects failed for the same reason. A wrapped one may be removed as soon as it says
// that it will fail: then it does not come to say that it has failed, and does not count what its last pods did.
func failedAlike(bare, wrapped Summary) bool {
	reason := bare.failure()
	return bare.Outcome == Failed && wrapped.Outcome == Failed && reason != "" && reason == wrapped.failure()
}

// failure is the reason for which an object fails, or "".
func (s Summary) failure() string {
	for _, f := range s.Final {
		if kind, reason, _ := strings.Cut(f, "/"); kind == "Failed" || kind == "FailureTarget" {
			return reason
		}
	}
	return ""
}
