// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// maxMessage is the longest message that the schema of a condition allows.
const maxMessage = 32768

// set writes a condition of the AppWrapper. Its transition time moves only when its
// status does.
func (v *view) set(kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason, message string) {
	setCondition(&v.status.Conditions, kind, status, reason, message, v.now)
}

// clear sets a condition to False if it is True.
func (v *view) clear(kind v1beta2.AppWrapperCondition, reason, message string) {
	if v.isTrue(kind) {
		v.set(kind, metav1.ConditionFalse, reason, message)
	}
}

func (v *view) isTrue(kind v1beta2.AppWrapperCondition) bool {
	return meta.IsStatusConditionTrue(v.status.Conditions, string(kind))
}

// hasReason tells whether a condition is present with that reason.
func (v *view) hasReason(kind v1beta2.AppWrapperCondition, reason string) bool {
	c := meta.FindStatusCondition(v.status.Conditions, string(kind))
	return c != nil && c.Reason == reason
}

// transitionTime is when a condition last changed its status; zero if it never did.
func (v *view) transitionTime(kind v1beta2.AppWrapperCondition) time.Time {
	if c := meta.FindStatusCondition(v.status.Conditions, string(kind)); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

func isTrueIn(status v1beta2.AppWrapperStatus, kind v1beta2.AppWrapperCondition) bool {
	return meta.IsStatusConditionTrue(status.Conditions, string(kind))
}

// setCondition exists because apimachinery's SetStatusCondition reads the clock unless it is
// given a time.
func setCondition(conditions *[]metav1.Condition, kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason, message string, now time.Time) {
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               string(kind),
		Status:             status,
		Reason:             reason,
		Message:            message,
		LastTransitionTime: metav1.Time{Time: now},
	})
}

// setComponent writes a condition of component i, without a message. Only refusals have
// one.
func (v *view) setComponent(i int, kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus, reason string) {
	setCondition(&v.status.ComponentStatus[i].Conditions, kind, status, reason, "", v.now)
}

// componentCondition is a condition of component i, nil if absent.
func (v *view) componentCondition(i int, kind v1beta2.AppWrapperCondition) *metav1.Condition {
	return meta.FindStatusCondition(v.status.ComponentStatus[i].Conditions, string(kind))
}

func (v *view) componentIs(i int, kind v1beta2.AppWrapperCondition, status metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(v.status.ComponentStatus[i].Conditions, string(kind), status)
}

// forget removes a condition of component i.
func (v *view) forget(i int, kind v1beta2.AppWrapperCondition) {
	meta.RemoveStatusCondition(&v.status.ComponentStatus[i].Conditions, string(kind))
}

// where collects the indexes of the components for which the predicate is true.
func (v *view) where(predicate func(i int) bool) []int {
	var indexes []int
	for i := range v.Components {
		if predicate(i) {
			indexes = append(indexes, i)
		}
	}
	return slices.Clip(indexes)
}
