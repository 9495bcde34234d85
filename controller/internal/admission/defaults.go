// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"regexp"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

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
	aw.Labels[v1beta2.UserLabel] = labelValue(user.Username)
	aw.Labels[v1beta2.UserIDLabel] = labelValue(user.UID)
}

const longestLabelValue = 63

var notInLabelValue = regexp.MustCompile(`[^-_.0-9A-Za-z]`)

// labelValue makes a label value of any text. The result may be empty, and two
// texts may become the same value.
func labelValue(text string) string {
	if len(text) > longestLabelValue {
		text = text[:longestLabelValue]
	}
	return strings.Trim(notInLabelValue.ReplaceAllString(text, "_"), "-_.")
}
