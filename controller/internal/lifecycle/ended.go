// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// finished tells whether component i has reported success in this attempt, even if it
// was removed since. An index out of range is not finished.
func (v *view) finished(i int) bool {
	return 0 <= i && i < len(v.Components) && v.componentIs(i, v1beta2.ComponentSucceeded, metav1.ConditionTrue)
}

// alive tells whether any pod may still be using quota.
func (v *view) alive() bool {
	for _, p := range v.Pods {
		if p.alive() {
			return true
		}
	}
	return false
}

func (p Pod) alive() bool {
	return p.Phase != corev1.PodSucceeded && p.Phase != corev1.PodFailed
}

// endedTerminally tells whether a failed pod has an exit code that forbids a retry.
func (v *view) endedTerminally() bool {
	for _, p := range v.Pods {
		if p.Phase == corev1.PodFailed && v.Policy.terminal(p.ExitCodes) {
			return true
		}
	}
	return false
}
