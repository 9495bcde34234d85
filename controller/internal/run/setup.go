// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// concurrency is how many Runs are worked on at the same time.
const concurrency = 16

// Setup adds the controller of Runs to mgr, whose caches must be made with CacheOptions. No Run is
// accepted unless the webhooks that record its author are served.
func Setup(mgr ctrl.Manager, settings runplan.Settings, authors accessreview.Authors, recorded bool) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Run{}, waiting, waitsFor); err != nil {
		return fmt.Errorf("cannot index Runs: %w", err)
	}
	counters, err := countersOf(mgr)
	if err != nil {
		return err
	}
	recorder, err := newRecorder(mgr)
	if err != nil {
		return fmt.Errorf("cannot add the recorder of events: %w", err)
	}
	r := &Reconciler{
		client:   mgr.GetClient(),
		cached:   mgr.GetCache(),
		live:     mgr.GetAPIReader(),
		recorder: recorder,
		metrics:  counters,
		settings: settings,
		now:      time.Now,
		authors:  authors,
		recorded: recorded,
	}
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	wake := handler.EnqueueRequestsFromMapFunc(wakeWaiting(mgr.GetCache()))
	err = ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Run{}).
		Watches(&v1beta2.AppWrapper{}, handler.EnqueueRequestsFromMapFunc(wakeRunOf)).
		Watches(&v1alpha1.Application{}, wake, specChanged).
		Watches(&v1alpha1.DataSet{}, wake, specChanged).
		Watches(&v1alpha1.RunSizeConfiguration{}, wake, specChanged).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, time.Minute),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot make the controller of Runs: %w", err)
	}
	return nil
}

// countersOf are metrics that forget namespaces without Runs.
func countersOf(mgr ctrl.Manager) (*metrics, error) {
	counters, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	return counters, counters.namespaces.Forget(mgr, &v1alpha1.RunList{})
}

// waiting indexes the Runs for which an AppWrapper is still to be planned, by their Applications
// and by anything.
const (
	waiting  = "waiting"
	anything = "*" // no Application has this name
)

func waitsFor(object client.Object) []string {
	run, ok := object.(*v1alpha1.Run)
	if !ok || run.Status.Phase.Terminal() || run.Status.AppWrapper != nil {
		return nil
	}
	if len(run.Status.Steps) == 0 {
		return []string{anything, inNamespace(runplan.ApplicationNamespace(run), run.Spec.Application.Name)}
	}
	var names []string
	for _, step := range run.Status.Steps {
		if step.Phase == v1alpha1.StepWaiting || step.Phase == v1alpha1.RunPending {
			names = append(names, anything, inNamespace(runplan.ApplicationNamespace(run), step.Application.Name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inNamespace is how the index names an Application, which Runs of other namespaces may wait for.
func inNamespace(namespace, application string) string { return namespace + "/" + application }

// usedIn are the Applications whose plan depends on one: itself, and workflows that run it.
func usedIn(ctx context.Context, cached client.Reader, app client.Object) []string {
	names := []string{inNamespace(app.GetNamespace(), app.GetName())}
	var all v1alpha1.ApplicationList
	if err := cached.List(ctx, &all, client.InNamespace(app.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the workflows of an Application")
	}
	for i := range all.Items {
		if slices.Contains(runplan.ApplicationsOf(&all.Items[i]), app.GetName()) {
			names = append(names, inNamespace(app.GetNamespace(), all.Items[i].Name))
		}
	}
	return names
}

// wakeWaiting wakes the Runs that may wait for an Application, a DataSet or a size.
func wakeWaiting(cached client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		wanted, where := []string{anything}, object.GetNamespace()
		if _, is := object.(*v1alpha1.Application); is {
			wanted, where = usedIn(ctx, cached, object), metav1.NamespaceAll
		}
		var requests []reconcile.Request
		for _, name := range wanted {
			var runs v1alpha1.RunList
			err := cached.List(ctx, &runs, client.InNamespace(where), client.MatchingFields{waiting: name}, client.UnsafeDisableDeepCopy)
			if err != nil {
				log.FromContext(ctx).Error(err, "cannot list the Runs that wait") // only a cache that is not indexed does that
			}
			for i := range runs.Items {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs.Items[i])})
			}
		}
		return requests
	}
}

// wakeRunOf wakes the Run of an AppWrapper.
func wakeRunOf(_ context.Context, aw client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: aw.GetNamespace(), Name: aw.GetLabels()[v1alpha1.RunLabel]}}}
}
