// SPDX-License-Identifier: Apache-2.0

// Package slackqueue keeps the lending limits of slack queues. How much they may lend decides
// package slackquota.
package slackqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

// Settings are what the configuration file says.
type Settings struct {
	// Queues are the names of the slack queues.
	Queues []string
	// Rules say how a node shows that it is unhealthy.
	Rules nodehealth.Rules
	// Namespace is the controller's own.
	Namespace string
}

// reconciler writes the limits of all slack queues.
type reconciler struct {
	Settings
	cached client.Reader
	client client.Client
	settle time.Duration
	report *report
	now    func() time.Time
	// absent is since when the file of the teams is not there; zero if it is.
	absent time.Time
}

// fileGrace is how long the file of the teams may be absent before its queues are removed. An administrator
// may have deleted it by mistake, and a GitOps tool may replace it.
const fileGrace = 10 * time.Minute

// Reconcile decides from the caches. A write fails if the queue has changed since, and is then
// decided again.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	nodes, flavors, err := nodewatch.Read(ctx, r.cached)
	if err != nil {
		return ctrl.Result{}, err
	}
	devices, failed := r.remember(ctx, nodes)
	if devices == nil {
		return ctrl.Result{}, failed
	}
	if err := r.tell(ctx, slackquota.Count(r.Rules, flavors, nodes, devices)); err != nil {
		return ctrl.Result{}, err
	}
	missing := slackquota.Find(r.Rules, flavors, nodes, devices)
	declared, again, err := r.declared(ctx)
	if declared == nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	result, unkept := nodewatch.WriteAll(r.Queues, r.settle, func(name string) (time.Duration, error) {
		return r.keep(ctx, name, declared, again, missing)
	})
	if failed = errors.Join(failed, err, unkept); failed != nil {
		return ctrl.Result{}, failed
	}
	return result, nil
}

// tell reports what the caches have: a limit that is written now is reported as soon as it arrives.
func (r *reconciler) tell(ctx context.Context, supplies slackquota.Supplies) error {
	var queues kueue.ClusterQueueList
	if err := r.cached.List(ctx, &queues, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list ClusterQueues: %w", err)
	}
	figures := slackquota.Report(queues.Items, r.Queues, supplies)
	r.report.latest.Store(&figures)
	return nil
}

// declared is nil if the ConfigMap cannot be read. Without one, the teams file has no slack queues, but nothing is
// removed before the ConfigMap was absent for a while: again is how much longer.
func (r *reconciler) declared(ctx context.Context) (all slackquota.Declarations, again time.Duration, err error) {
	var stored corev1.ConfigMap
	err = r.cached.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: slackquota.DeclaredName}, &stored)
	if client.IgnoreNotFound(err) != nil {
		return nil, 0, fmt.Errorf("cannot read ConfigMap %s: %w", slackquota.DeclaredName, err)
	}
	switch now := r.now(); {
	case err == nil:
		r.absent = time.Time{}
	case r.absent.IsZero():
		r.absent, again = now, fileGrace
	default:
		again = max(0, r.absent.Add(fileGrace).Sub(now))
	}
	all, err = parse(stored.Data)
	return all, again, err
}

// keep writes one queue, if anything changes. One that would be removed stays for a while, and is looked at again then.
func (r *reconciler) keep(ctx context.Context, name string, declared slackquota.Declarations, while time.Duration, missing slackquota.Missing) (again time.Duration, err error) {
	q := &kueue.ClusterQueue{}
	err = r.cached.Get(ctx, client.ObjectKey{Name: name}, q)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("cannot read ClusterQueue %s: %w", name, err)
	}
	if err != nil {
		q = nil
	}
	step := slackquota.Keep(name, q, declared, missing)
	if step.Verb == slackquota.Leave {
		return 0, nil
	}
	if step.Verb == slackquota.Remove && while > 0 {
		log.FromContext(ctx).Info("the ConfigMap of slack queues is gone: the queue goes, too, if it does not come back", "queue", name, "after", while)
		return while, nil
	}
	if err = r.write(ctx, name, q, step); err != nil {
		return 0, fmt.Errorf("cannot %s ClusterQueue %s: %w", verbs[step.Verb], name, err)
	}
	log.FromContext(ctx).Info(verbs[step.Verb], "queue", name, "why", step.Why)
	return 0, nil
}

var verbs = map[slackquota.Verb]string{slackquota.Make: "make", slackquota.Patch: "write the lending limits of", slackquota.Remove: "remove"}

// write makes a queue by an apply and not by a POST, because a right to create can name its queues only for an
// apply. If somebody has made another one meanwhile, the apply conflicts.
func (r *reconciler) write(ctx context.Context, name string, q *kueue.ClusterQueue, step slackquota.Step) error {
	by := client.FieldOwner(slackquota.FieldOwner)
	switch step.Verb {
	case slackquota.Make:
		return r.client.Patch(ctx, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.ApplyPatchType, step.Body), by)
	case slackquota.Remove:
		return r.client.Delete(ctx, q, client.Preconditions{UID: &q.UID, ResourceVersion: &q.ResourceVersion})
	}
	return r.client.Patch(ctx, q, client.RawPatch(types.JSONPatchType, step.Body), by)
}

// remember stores of each node the most devices that it has shown. It returns nil if what is
// stored cannot be read.
func (r *reconciler) remember(ctx context.Context, nodes []corev1.Node) (slackquota.Devices, error) {
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: slackquota.DevicesName}}
	err := r.cached.Get(ctx, client.ObjectKeyFromObject(stored), stored)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return nil, fmt.Errorf("cannot read ConfigMap %s: %w", slackquota.DevicesName, err)
	}
	devices := slackquota.Parse(stored.Data).Learn(nodes)
	changes := devices.Changes(stored.Data)
	if len(changes) == 0 {
		return devices, nil
	}
	change, _ := json.Marshal(map[string]any{"data": changes}) // cannot fail: there are only strings
	if absent {
		_ = json.Unmarshal(change, stored) // likewise
		err = r.client.Create(ctx, stored, client.FieldOwner(slackquota.FieldOwner))
	} else {
		err = r.client.Patch(ctx, stored, client.RawPatch(types.MergePatchType, change), client.FieldOwner(slackquota.FieldOwner))
	}
	if err != nil {
		return devices, fmt.Errorf("cannot write ConfigMap %s: %w", slackquota.DevicesName, err)
	}
	return devices, nil
}
