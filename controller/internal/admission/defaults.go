// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// setDefaults puts a new AppWrapper into the default queue, unless it names one, and records
// who created it. It overwrites the labels for the user, on which usage reports rely, unless
// the AppWrapper is attributed: created in the name of the user that they name.
func setDefaults(aw *v1beta2.AppWrapper, defaultQueue string, user authenticationv1.UserInfo, attributed bool) {
	if aw.Labels == nil {
		aw.Labels = map[string]string{}
	}
	if _, named := aw.Labels[v1beta2.QueueNameLabel]; !named && defaultQueue != "" {
		aw.Labels[v1beta2.QueueNameLabel] = defaultQueue
	}
	if attributed {
		return
	}
	aw.Labels[v1beta2.UserLabel] = admissionrules.UserLabelValue(user.Username)
	aw.Labels[v1beta2.UserIDLabel] = admissionrules.UserLabelValue(user.UID)
}

// attributed tells whether a new AppWrapper keeps the labels for the user that it came with. They
// are kept together, so that no name gets the UID of another user. The verb attribute is one of
// MLBatch, for controllers that create AppWrappers for their authors. A review that fails is an
// error: otherwise the use of such an author would silently be the controller's.
func (d *defaulter) attributed(ctx context.Context, request admission.Request, aw *v1beta2.AppWrapper) (bool, error) {
	if _, named := aw.Labels[v1beta2.UserLabel]; !named {
		return false, nil
	}
	return d.review.Allows(ctx, request.UserInfo, request.Namespace, "attribute", appWrappers)
}
