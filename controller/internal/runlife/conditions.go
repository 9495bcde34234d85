// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// The reasons of conditions that are not the AppWrapper's.
const (
	// Planned: the AppWrapper can be created.
	Planned = "Planned"
	// NameTaken: an AppWrapper of another owner has the name.
	NameTaken = "NameTaken"
	// Refused: the API server does not take the AppWrapper.
	Refused = "Refused"
	// NamespaceNotEnabled: the controller of Runs may not create AppWrappers in the namespace.
	NamespaceNotEnabled = "NamespaceNotEnabled"
	// Forbidden: the author may not create what the plan has.
	Forbidden = "Forbidden"

	// WaitsForQuota: Kueue has not admitted the AppWrapper.
	WaitsForQuota = "WaitsForQuota"
	// Deactivated: nobody starts the AppWrapper, because its Workload is deactivated.
	Deactivated = "Deactivated"
	// Preempted: the quota was taken away.
	Preempted = "Preempted"
	// Admitted: Kueue has admitted the AppWrapper.
	Admitted = "Admitted"
	// PodsStarting: not all pods are ready.
	PodsStarting = "PodsStarting"
	// AllPodsReady: all pods are ready.
	AllPodsReady = "AllPodsReady"
	// Ended: the Run has come to its final phase.
	Ended = "Ended"

	// Succeeded: the program ended well.
	Succeeded = "Succeeded"
	// QueueClosed: all tasks of a queue have ended, and not all of its workers.
	QueueClosed = "QueueClosed"
	// Cancelled: the author cancelled the Run.
	Cancelled = "Cancelled"
	// DeadlineExceeded: activeDeadlineSeconds are over.
	DeadlineExceeded = "DeadlineExceeded"
	// StepFailed: a step of a workflow has failed.
	StepFailed = "StepFailed"
	// AppWrapperDeleted: somebody deleted the AppWrapper.
	AppWrapperDeleted = "AppWrapperDeleted"
	// AppWrapperFailed: the AppWrapper failed and does not say why.
	AppWrapperFailed = "AppWrapperFailed"
)

// longestMessage is how much of a message a status keeps: users may provoke long ones.
const longestMessage = 4096

func cut(message string) string {
	if len(message) <= longestMessage {
		return message
	}
	return strings.ToValidUTF8(message[:longestMessage], "") + "…"
}

// set writes a condition of the Run. Its transition time moves only when its status does.
func (v *view) set(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&v.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: cut(message),
		ObservedGeneration: v.Run.Generation, LastTransitionTime: metav1.Time{Time: v.now},
	})
}

// clear sets a condition to False if it is True.
func (v *view) clear(kind, reason string) {
	if meta.IsStatusConditionTrue(v.status.Conditions, kind) {
		v.set(kind, metav1.ConditionFalse, reason, "")
	}
}

// stored is a condition of the Run as it is stored, with a status and a reason that are empty if
// it is absent.
func (v *view) stored(kind string) metav1.Condition {
	if c := meta.FindStatusCondition(v.Run.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// ofAppWrapper is a condition of the AppWrapper, nil if absent.
func (v *view) ofAppWrapper(kind v1beta2.AppWrapperCondition) *metav1.Condition {
	return meta.FindStatusCondition(v.mine().Status.Conditions, string(kind))
}

func isTrue(c *metav1.Condition) bool {
	return c != nil && c.Status == metav1.ConditionTrue
}

// wasAccepted: the Run is stored as accepted.
func (v *view) wasAccepted() bool {
	return v.stored(v1alpha1.Accepted).Status == metav1.ConditionTrue
}
