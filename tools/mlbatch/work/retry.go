// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// longestName leaves room for the names of pod sets, which the webhook asks for.
const longestName = 60

// Repeating says in a question what Retry would do.
func Repeating(o explain.Objects) string {
	i := summary(o)
	if o.Run != nil {
		i.Kind, i.Namespace, i.Name = "Run", o.Run.Namespace, o.Run.Name
	}
	return fmt.Sprintf("Submit %s %s in namespace %s again, under another name?", i.Kind, i.Name, i.Namespace)
}

// Retry creates another AppWrapper, or Run, with the spec of one that has ended, and with a change. Its name is NAME-2,
// or has the next number that is free. Its resources have new names, too, unless others may know the old ones.
func Retry(ctx context.Context, c client.Client, o explain.Objects, change Change, out io.Writer) error {
	if o.Run != nil && len(change.Settings) > 0 {
		return fmt.Errorf("settings are those of 'mlbatch submit', and Run %s has none: change its manifest, and submit that under another name", o.Run.Name)
	}
	if o.Run != nil {
		return runs.Retry(ctx, c, client.ObjectKeyFromObject(o.Run), change.Annotate, out)
	}
	if err := repeatable(o); err != nil {
		return err
	}
	others, err := readOthers(ctx, c, o.AppWrapper.Namespace)
	if err != nil {
		return err
	}
	aw := again(o.AppWrapper, others.taken)
	if err := change.remake(ctx, o.AppWrapper, aw); err != nil {
		return err
	}
	change.Annotate(aw)
	if err := others.room(o.AppWrapper, aw); err != nil {
		return err
	}
	err = c.Create(ctx, aw, client.FieldOwner("mlbatch"))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("another AppWrapper %s was created at this moment: run the command again", aw.Name)
	}
	if err != nil {
		return clusterstate.Failed(err, clusterstate.Request{Verb: "create", Resource: "appwrappers", Namespace: aw.Namespace})
	}
	fmt.Fprintf(out, "AppWrapper %s was submitted in namespace %s\n", aw.Name, aw.Namespace)
	return nil
}

// repeatable is an error if there is nothing to copy.
func repeatable(o explain.Objects) error {
	i := summary(o)
	switch {
	case o.AppWrapper == nil:
		return fmt.Errorf("%s %s is not wrapped: submit it again from its manifest, or wrap it with 'mlbatch pack'", i.Kind, i.Name)
	case ownerRun(o.AppWrapper) != "":
		return fmt.Errorf("AppWrapper %s belongs to Run %s: use 'mlbatch retry run/%s'", i.Name, ownerRun(o.AppWrapper), ownerRun(o.AppWrapper))
	case i.State != string(v1beta2.AppWrapperSucceeded) && i.State != string(v1beta2.AppWrapperFailed):
		return fmt.Errorf("AppWrapper %s has not ended: it is %s: wait for its end with 'mlbatch wait %s'", i.Name, i.State, i.Name)
	}
	return nil
}

// others are the AppWrappers of a namespace.
type others struct {
	taken map[string]bool
	// holders are the names of AppWrappers by the resources that they have, or will have.
	holders map[string]string
}

func readOthers(ctx context.Context, c client.Client, namespace string) (others, error) {
	all := others{map[string]bool{}, map[string]string{}}
	err := clusterstate.Each(ctx, c, &v1beta2.AppWrapperList{}, func(aw *v1beta2.AppWrapper) {
		all.taken[aw.Name] = true
		ended := aw.Status.Phase == v1beta2.AppWrapperSucceeded || aw.Status.Phase == v1beta2.AppWrapperFailed
		if !ended || meta.IsStatusConditionTrue(aw.Status.Conditions, string(v1beta2.ResourcesDeployed)) {
			for _, resource := range resourcesOf(aw) {
				all.holders[resource] = aw.Name
			}
		}
	}, client.InNamespace(namespace))
	if err != nil {
		err = clusterstate.Failed(err, clusterstate.Request{Verb: "list", Resource: "appwrappers", Namespace: namespace})
	}
	return all, err
}

// room is an error if a copy needs a name that another AppWrapper has.
func (all others) room(old, aw *v1beta2.AppWrapper) error {
	for _, resource := range resourcesOf(aw) {
		switch holder := all.holders[resource]; holder {
		case "":
		case old.Name:
			return fmt.Errorf("AppWrapper %s keeps its resources, whose names another one would need: 'mlbatch why %s' says until when", holder, holder)
		default:
			return fmt.Errorf("AppWrapper %s has resources whose names another one would need: wait for its end with 'mlbatch wait %s', or cancel it", holder, holder)
		}
	}
	return nil
}

// resourcesOf are the kinds and names of what an AppWrapper wraps, without those whose names are generated.
func resourcesOf(aw *v1beta2.AppWrapper) (all []string) {
	for _, component := range aw.Spec.Components {
		var resource metav1.PartialObjectMetadata
		if err := json.Unmarshal(component.Template.Raw, &resource); err == nil && resource.Name != "" {
			all = append(all, resource.GroupVersionKind().GroupKind().String()+"/"+resource.Name)
		}
	}
	return all
}

// again is a new AppWrapper with the spec of an old one, without what Kueue has written, and with names of its own.
func again(old *v1beta2.AppWrapper, taken map[string]bool) *v1beta2.AppWrapper {
	base := cmp.Or(old.Annotations[runs.RetryOf], old.Name)
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{
		Name: runs.NextName(base, old.Name, min(longestName, max(longestJob, len(old.Name))), taken), Namespace: old.Namespace, Labels: runs.Untracked(old.Labels), Annotations: runs.Untracked(old.Annotations),
	}, Spec: *old.Spec.DeepCopy()}
	delete(aw.Annotations, corev1.LastAppliedConfigAnnotation)
	aw.Annotations[runs.RetryOf] = base
	aw.Spec.Suspend = false // the webhook decides
	for i := range aw.Spec.Components {
		aw.Spec.Components[i].PodSetInfos = nil
	}
	if components, free := renamed(aw.Spec.Components, old, aw.Name); free {
		aw.Spec.Components = components
	}
	return aw
}
