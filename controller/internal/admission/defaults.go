// SPDX-License-Identifier: Apache-2.0

package admission

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// setDefaults puts a new AppWrapper into the default queue, unless it names one, and records
// who created it. It overwrites the labels for the user: usage reports rely on them.
func setDefaults(aw *v1beta2.AppWrapper, defaultQueue string, user authenticationv1.UserInfo) {
	if aw.Labels == nil {
		aw.Labels = map[string]string{}
	}
	if _, named := aw.Labels[v1beta2.QueueNameLabel]; !named && defaultQueue != "" {
		aw.Labels[v1beta2.QueueNameLabel] = defaultQueue
	}
	aw.Labels[v1beta2.UserLabel] = admissionrules.UserLabelValue(user.Username)
	aw.Labels[v1beta2.UserIDLabel] = admissionrules.UserLabelValue(user.UID)
}
