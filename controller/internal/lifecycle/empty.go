// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// empty is the phase "", in which the controller sees the AppWrapper for the first time. It
// records the pod sets, which never change again. One that need not wait for quota begins at once.
func empty(v *view) Decision {
	v.status.ComponentStatus = initialComponents(v.Components)
	if v.Problem != "" {
		return v.fail(v1beta2.ReasonCreateFailed, v.Problem).because(CauseInvalidAppWrapper)
	}
	for i, c := range v.Components {
		if c.Problem != "" {
			return v.fail(v1beta2.ReasonCreateFailed, fmt.Sprintf("component %d cannot be deployed: %s", i, c.Problem)).because(CauseInvalidComponent)
		}
	}
	if v.Suspend || !v.admittedAsAWhole() {
		return v.move(v1beta2.AppWrapperSuspended).because(CauseAccepted)
	}
	return v.begin()
}

func initialComponents(components []Component) []v1beta2.AppWrapperComponentStatus {
	status := make([]v1beta2.AppWrapperComponentStatus, len(components))
	for i, c := range components {
		status[i] = v1beta2.AppWrapperComponentStatus{
			Kind:       c.Kind,
			APIVersion: c.APIVersion,
			PodSets:    append([]v1beta2.AppWrapperPodSet{}, c.PodSets...),
		}
	}
	return status
}
