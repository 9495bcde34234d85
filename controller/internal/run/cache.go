// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// CacheOptions limit the caches to the AppWrappers of Runs, and to what is read.
func CacheOptions() (cache.Options, error) {
	ofRuns, err := labels.NewRequirement(v1alpha1.RunLabel, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Run{}:         {Transform: slimRun},
			&v1alpha1.Application{}: {Transform: slimMetadata},
			&v1alpha1.DataSet{}:     {Transform: slimMetadata},
			&v1beta2.AppWrapper{}:   {Label: labels.NewSelector().Add(*ofRuns), Transform: slimAppWrapper},
		},
	}, nil
}

// slimMetadata drops annotations, which no plan depends on.
func slimMetadata(object any) (any, error) {
	o, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("a %T is in a cache of objects", object)
	}
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	return o, nil
}

// slimRun drops the copy of the Run that kubectl apply keeps in it and, once no plan is made any
// more, what only a plan reads.
func slimRun(object any) (any, error) {
	run, ok := object.(*v1alpha1.Run)
	if !ok {
		return nil, fmt.Errorf("a %T is in the cache of Runs", object)
	}
	run.ManagedFields = nil
	delete(run.Annotations, corev1.LastAppliedConfigAnnotation)
	if run.Status.AppWrapper != nil || run.Status.Phase.Terminal() {
		run.Annotations, run.Labels = nil, nil
		run.Spec.Variables, run.Spec.Options, run.Spec.Resources = v1alpha1.Variables{}, nil, nil
	}
	share(&run.Namespace, &run.Spec.Application.Name, &run.Spec.Size, &run.Spec.QueueName, &run.Status.Message)
	run.Status.Conditions = shared(run.Status.Conditions)
	if resolved := run.Status.Resolved; resolved != nil {
		share(&resolved.Size, &resolved.PriorityClass, &resolved.Queue, &resolved.Repo)
		if run.Status.AppWrapper != nil {
			resolved.PerWorker = nil // no save changes it any more
		}
	}
	return run, nil
}

// readConditions are those of an AppWrapper that runlife reads.
var readConditions = []v1beta2.AppWrapperCondition{v1beta2.PodsReady, v1beta2.Unhealthy, v1beta2.Deactivated}

// slimAppWrapper keeps what runlife reads.
func slimAppWrapper(object any) (any, error) {
	aw, ok := object.(*v1beta2.AppWrapper)
	if !ok {
		return nil, fmt.Errorf("a %T is in the cache of AppWrappers", object)
	}
	aw.ManagedFields, aw.Annotations, aw.Finalizers = nil, nil, nil
	aw.Labels = map[string]string{v1alpha1.RunLabel: aw.Labels[v1alpha1.RunLabel]}
	aw.Spec = v1beta2.AppWrapperSpec{}
	aw.Status.ComponentStatus = slices.Clone(slices.DeleteFunc(aw.Status.ComponentStatus, func(c v1beta2.AppWrapperComponentStatus) bool {
		return c.Name != runplan.BrokerName(aw.Name)
	}))
	aw.Status.Conditions = shared(slices.DeleteFunc(aw.Status.Conditions, func(c metav1.Condition) bool {
		return !slices.Contains(readConditions, v1beta2.AppWrapperCondition(c.Type))
	}))
	share(&aw.Namespace)
	for i := range aw.OwnerReferences {
		share(&aw.OwnerReferences[i].APIVersion, &aw.OwnerReferences[i].Kind)
	}
	return aw, nil
}

// share lets equal strings of thousands of objects be one: the decoder gives each a copy of its own.
func share(texts ...*string) {
	for _, text := range texts {
		*text = unique.Make(*text).Value()
	}
}

func shared(conditions []metav1.Condition) []metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		share(&c.Type, &c.Reason, &c.Message)
		c.Status = metav1.ConditionStatus(unique.Make(string(c.Status)).Value())
	}
	return slices.Clone(conditions) // without room for more
}
