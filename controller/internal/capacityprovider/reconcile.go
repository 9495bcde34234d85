// SPDX-License-Identifier: Apache-2.0

// Package capacityprovider tells Kueue what pods can get on the nodes, so that Kueue can change quota with them:
// https://github.com/kubernetes-sigs/kueue/tree/main/keps/12382-dynamic-quota-orchestration. What that is decides
// package slackquota.
package capacityprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

// ControllerName is what spec.controllerName of a CapacityProvider says if its capacity is to come from here.
const ControllerName = "workload.codeflare.dev/node-health"

const fieldOwner = "mlbatch-capacity"

// Settings are what the configuration file says.
type Settings struct {
	// Providers are the names of CapacityProviders.
	Providers []string
	// Rules say how a node shows that it is unhealthy.
	Rules nodehealth.Rules
}

// version is of Kueue 0.20, whose module is no dependency yet.
var version = schema.GroupVersion{Group: kueue.SchemeGroupVersion.Group, Version: "v1alpha1"}

// provider is what is read and written of a CapacityProvider.
type provider struct {
	Spec struct {
		ControllerName string `json:"controllerName"`
		ManagedFlavors []struct {
			Name kueue.ResourceFlavorReference `json:"name"`
		} `json:"managedFlavors"`
	} `json:"spec"`
	Status struct {
		Capacity snapshot `json:"capacity"`
	} `json:"status"`
}

type snapshot struct {
	Flavors        []slackquota.FlavorCapacity `json:"flavors"`
	LastUpdateTime metav1.Time                 `json:"lastUpdateTime"`
}

func (p provider) flavors() []kueue.ResourceFlavorReference {
	var names []kueue.ResourceFlavorReference
	for _, flavor := range p.Spec.ManagedFlavors {
		names = append(names, flavor.Name)
	}
	return names
}

// reconciler writes the status of all providers.
type reconciler struct {
	Settings
	cached client.Reader
	client client.Client
	settle time.Duration
}

// Reconcile decides from the caches. A write fails if the provider has changed since, and is then decided again.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	nodes, flavors, err := nodewatch.Read(ctx, r.cached)
	if err != nil {
		return ctrl.Result{}, err
	}
	supplies := slackquota.Count(r.Rules, flavors, nodes, nil)
	return nodewatch.WriteAll(r.Providers, r.settle, func(name string) (time.Duration, error) {
		return 0, r.publish(ctx, name, supplies)
	})
}

// publish writes what a provider says, if that changes. One that there is not, or that others fill, is left alone.
func (r *reconciler) publish(ctx context.Context, name string, supplies slackquota.Supplies) error {
	stored := newProvider()
	err := r.cached.Get(ctx, client.ObjectKey{Name: name}, stored)
	if err != nil {
		return fmt.Errorf("cannot read CapacityProvider %s: %w", name, err)
	}
	var p provider
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &p); err != nil {
		return fmt.Errorf("cannot understand CapacityProvider %s: %w", name, err)
	}
	if p.Spec.ControllerName != ControllerName {
		log.FromContext(ctx).Info("leave the CapacityProvider to its own controller", "provider", name, "controller", p.Spec.ControllerName)
		return nil
	}
	capacity := slackquota.Capacity(p.flavors(), supplies, p.Status.Capacity.Flavors)
	if apiequality.Semantic.DeepEqual(capacity, p.Status.Capacity.Flavors) {
		return nil
	}
	change, _ := json.Marshal(map[string]any{ // cannot fail
		"metadata": map[string]any{"resourceVersion": stored.GetResourceVersion()},
		"status":   map[string]any{"capacity": snapshot{capacity, metav1.Now()}},
	})
	err = r.client.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, change), client.FieldOwner(fieldOwner))
	if err != nil {
		return fmt.Errorf("cannot write the capacity of CapacityProvider %s: %w", name, err)
	}
	return nil
}

func newProvider() *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(version.WithKind("CapacityProvider"))
	return empty
}
