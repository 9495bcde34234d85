// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
)

// fieldManager is who made the fields of an AppWrapper.
const fieldManager = "mlbatch-runs"

// act carries out the effect of a decision about the Run or a step, once the status of the Run has
// been saved. It reports whether the snapshot has an answer of the API server that it lacked.
func (r *Reconciler) act(ctx context.Context, o *observation, s *runlife.Snapshot, effect runlife.Effect) (answered bool, err error) {
	switch effect {
	case runlife.Create:
		if current, err := r.current(ctx, o); !current {
			return false, client.IgnoreNotFound(err)
		}
		return r.create(ctx, s)
	case runlife.Try:
		return r.create(ctx, s, client.DryRunAll)
	case runlife.Delete:
		return false, r.remove(ctx, s.AppWrapper, client.Preconditions{UID: ptr.To(s.AppWrapper.UID)})
	case runlife.DeleteRun:
		err = r.remove(ctx, o.Run, client.Preconditions{UID: ptr.To(o.Run.UID), ResourceVersion: ptr.To(o.Run.ResourceVersion)})
		if err == nil {
			r.echoes.ExpectAfter(o.Run, r.now())
		}
		return false, err
	}
	return false, nil
}

// current tells whether the Run is still the one that was decided upon. A stale cache may not know
// of an AppWrapper that is recorded and gone. What this reconcile has saved is not read again: the save
// was accepted, so nobody had recorded one.
func (r *Reconciler) current(ctx context.Context, o *observation) (bool, error) {
	if o.saved {
		return true, nil
	}
	now := &v1alpha1.Run{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o.Run), now); err != nil {
		return false, fmt.Errorf("cannot read the Run again: %w", err)
	}
	return now.UID == o.Run.UID && now.ResourceVersion == o.Run.ResourceVersion, nil
}

// create creates the planned AppWrapper, or tries to. It never changes one that exists: an
// earlier Run may have had the name.
func (r *Reconciler) create(ctx context.Context, s *runlife.Snapshot, options ...client.CreateOption) (answered bool, err error) {
	left, err := r.left(ctx, s)
	switch {
	case err != nil:
		return false, err
	case left != "":
		s.Answer = &runlife.Answer{Reason: runlife.Forbidden, Message: left, At: r.now()}
		r.answers.remember(s)
		return true, nil
	}
	aw := s.Plan.Planned[0].AppWrapper.DeepCopy()
	aw.Labels[v1beta2.UserLabel] = admissionrules.UserLabelValue(s.Run.Annotations[v1alpha1.AuthorAnnotation])
	aw.Labels[v1beta2.UserIDLabel] = admissionrules.UserLabelValue(s.Run.Annotations[v1alpha1.AuthorUIDAnnotation])
	err = r.client.Create(ctx, aw, append(options, client.FieldOwner(fieldManager))...)
	switch {
	case err == nil && len(options) == 0:
		r.answers.taken(s)
		r.created.Expect(aw, r.now())
		return false, nil
	case err == nil:
		s.Answer = &runlife.Answer{At: r.now()}
	case apierrors.IsAlreadyExists(err):
		err = r.meet(ctx, s, aw)
	case isRefusal(err):
		s.Answer, err = r.refusal(ctx, s.Run, err)
	}
	if err != nil {
		return false, err
	}
	r.answers.remember(s)
	return true, nil
}

// meet reads the AppWrapper that is there already. The Run's own was created before, and the
// cache does not have it yet.
func (r *Reconciler) meet(ctx context.Context, s *runlife.Snapshot, aw *v1beta2.AppWrapper) error {
	there, err := appWrapper(ctx, r.live, client.ObjectKeyFromObject(aw))
	if err != nil {
		return err
	}
	if there != nil && runlife.Owns(s.Run, there) {
		s.AppWrapper = there
		return nil
	}
	s.Answer = &runlife.Answer{Reason: runlife.NameTaken, Message: runlife.NameTakenBy(aw.Name), At: r.now()}
	return nil
}

// isRefusal: the API server or an admission controller says no, and would say so again.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	passing := []int32{http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests}
	code := status.Status().Code
	return code >= 400 && code < 500 && !slices.Contains(passing, code)
}

// refusal has the API server's words, or better ones if the right to create is missing.
func (r *Reconciler) refusal(ctx context.Context, run *v1alpha1.Run, said error) (*runlife.Answer, error) {
	a := &runlife.Answer{Reason: runlife.Refused, Message: said.Error(), At: r.now()}
	if !apierrors.IsForbidden(said) {
		return a, nil
	}
	enabled, err := accessreview.Self(ctx, r.client, run.Namespace, "create", v1beta2.GroupVersion.WithResource("appwrappers"))
	if err != nil {
		return nil, err
	}
	if !enabled {
		a.Reason, a.Message = runlife.NamespaceNotEnabled, runlife.NotEnabledIn(run.Namespace)
	}
	return a, nil
}

// remove deletes an object. If it is gone, or another one has its name, or it has changed since,
// there is nothing to delete now.
func (r *Reconciler) remove(ctx context.Context, object client.Object, still client.Preconditions) error {
	err := r.client.Delete(ctx, object, still, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("cannot delete %s: %w", object.GetName(), err)
}
