// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/troubles"
)

// A Run may come before the operator of its kind, or before its team may have Runs. It says so, and
// runs when it can: nobody has to touch it.
func TestARunWaitsForWhatThePlatformLacks(t *testing.T) {
	unserved := field.Forbidden(field.NewPath("spec", "components").Index(0), "the cluster does not serve the kind Job of batch/v1, so nobody can be allowed to create it")
	for title, row := range map[string]struct {
		refusal      error
		reason, says string
	}{
		"its operator": {
			apierrors.NewInvalid(v1beta2.GroupVersion.WithKind("AppWrapper").GroupKind(), theRun.Name, field.ErrorList{unserved}),
			"Refused", "the cluster does not serve the kind Job of batch/v1",
		},
		"its role binding": {
			apierrors.NewForbidden(v1beta2.GroupVersion.WithResource("appwrappers").GroupResource(), theRun.Name, errors.New("no right")),
			"NamespaceNotEnabled", "Runs are not enabled in namespace blue",
		},
	} {
		t.Run(title, func(t *testing.T) {
			l := newLife(t, troubles.Reliable(nil), nil)
			l.tell([]func(*life){refuses(row.refusal), applies, passing(time.Hour)})
			if got := l.run().Status; got.Phase != v1alpha1.RunPending || !strings.Contains(got.Message, row.says) || got.Conditions[0].Reason != row.reason {
				t.Errorf("while there is no such thing, the status is %+v", got)
			}
			l.tell(join([]func(*life){refuses(nil), passing(6 * time.Minute)}, starts, []func(*life){appWrapperIs(v1beta2.AppWrapperSucceeded)}))
			if got := l.run().Status.Phase; got != v1alpha1.RunSucceeded || l.made[theRun.Name] != 1 {
				t.Errorf("it is %s, and %d AppWrappers were made", got, l.made[theRun.Name])
			}
		})
	}
}

// Kueue looks at an AppWrapper again when its queue comes.
func TestARunWaitsForItsQueue(t *testing.T) {
	l := newLife(t, troubles.Reliable(nil), nil)
	l.edit(func(run *v1alpha1.Run) { run.Spec.QueueName = "later" })
	l.tell(join(queues, []func(*life){passing(time.Hour)}))
	if got := l.run().Status; got.Phase != v1alpha1.RunQueued || got.Resolved.Queue != "later" || l.appWrapper(theRun.Name).Labels[v1beta2.QueueNameLabel] != "later" {
		t.Errorf("the status is %+v", got)
	}
	l.tell(join(starts, []func(*life){appWrapperIs(v1beta2.AppWrapperSucceeded)}))
	if got := l.run().Status.Phase; got != v1alpha1.RunSucceeded {
		t.Errorf("it is %s", got)
	}
}
