// SPDX-License-Identifier: Apache-2.0

package runlife

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// RefusalPause is how long an AppWrapper that the API server refused is not tried again.
const RefusalPause = 5 * time.Minute

// unplanned: the Run waits for other objects, or for its author.
func unplanned(v *view) (Decision, bool) {
	if len(v.Plan.Problems) > 0 {
		return v.refuse(v.Plan.Problems[0].Reason, sentences(v.Plan.Problems)), true
	}
	if why := v.forbidden(); why != "" {
		return v.refuse(Forbidden, why), true
	}
	if v.AppWrapper != nil && !v.IsWorkflow() {
		// Nothing tells when that AppWrapper goes: it may have another Run's label.
		return v.refuse(NameTaken, NameTakenBy(v.AppWrapper.Name)).requeueAt(v.now.Add(RefusalPause), v.now), true
	}
	return Decision{}, false
}

func sentences(problems []runplan.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Message)
	}
	return strings.Join(all, "; ")
}

// NameTakenBy says that an AppWrapper has the name of a Run's.
func NameTakenBy(name string) string {
	return fmt.Sprintf("there is an AppWrapper %s that is not this Run's: choose another name", name)
}

// refused: the API server does not take the AppWrapper. It is tried again without creating it, so
// that nothing is saved if the answer is the same. What was refused before this process began is
// tried at once.
func refused(v *view) (Decision, bool) {
	if v.Answer == nil {
		return v.do(Try), slices.Contains([]string{NameTaken, Refused, NamespaceNotEnabled, Forbidden}, v.stored(v1alpha1.Accepted).Reason)
	}
	if v.Answer.Reason == "" {
		return Decision{}, false
	}
	d := v.refuse(v.Answer.Reason, v.Answer.Message).requeueAt(v.Answer.At.Add(RefusalPause), v.now)
	if d.Requeue == 0 {
		d.Effect = Try
	}
	return d, true
}

// refuse says why there is no AppWrapper.
func (v *view) refuse(reason, message string) Decision {
	v.set(v1alpha1.Accepted, metav1.ConditionFalse, reason, message)
	v.status.Resolved = nil
	return v.enter(v1alpha1.RunPending, message)
}

// accept promises the AppWrapper, and makes it once the promise is saved.
func accept(v *view) Decision {
	plan := v.Plan.Planned[0]
	v.status.Resolved = plan.Resolved.DeepCopy()
	v.set(v1alpha1.Accepted, metav1.ConditionTrue, Planned, plan.Size.String())
	d := v.enter(v1alpha1.RunPending, "its AppWrapper is being created")
	if v.wasAccepted() {
		d.Effect = Create
		return d
	}
	return d.announcing(normal(Planned, actionPlan, plan.Size.String()))
}

// forbidden says what the author may not create. The webhook of Runs wrote down what they may.
func (v *view) forbidden() string {
	list, known := v.Run.Annotations[v1alpha1.AuthorMayAnnotation]
	author := v.Run.Annotations[v1alpha1.AuthorAnnotation]
	if !known || author == "" {
		return "it is unknown who made this Run, because the webhook of Runs was not there: make another one"
	}
	may := strings.Split(list, ",")
	if own := resourceOf(v1beta2.GroupVersion.WithKind(v1beta2.AppWrapperKind)); !slices.Contains(may, own) {
		return fmt.Sprintf("user %q may not create %s in namespace %q", author, own, v.Run.Namespace)
	}
	for _, planned := range v.Plan.Planned {
		for _, wrapped := range Wrapped(planned.AppWrapper) {
			if !slices.Contains(may, wrapped) {
				return fmt.Sprintf("user %q may neither create nor wrap %s in namespace %q", author, wrapped, v.Run.Namespace)
			}
		}
	}
	return ""
}

// Wrapped are the resources of the components of an AppWrapper, as the author's rights name them.
func Wrapped(aw *v1beta2.AppWrapper) []string {
	all := make([]string, len(aw.Spec.Components))
	for i, c := range aw.Spec.Components {
		all[i] = wrappedResource(c)
	}
	return all
}

// NoLonger says what the author of a Run could do when they made it.
func NoLonger(author, verb string, resource schema.GroupVersionResource, namespace string) string {
	return fmt.Sprintf("user %q, who made this Run, may no longer %s %s in namespace %q: make another Run in your own name",
		author, verb, resource.GroupResource(), namespace)
}

// wrappedResource is the resource of a component, empty if its kind cannot be read.
func wrappedResource(c v1beta2.AppWrapperComponent) string {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(c.Template.Raw); err != nil {
		return ""
	}
	return resourceOf(object.GroupVersionKind())
}

func resourceOf(kind schema.GroupVersionKind) string {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource.GroupResource().String()
}

// NotEnabledIn says that the controller of Runs may not create AppWrappers in a namespace.
func NotEnabledIn(namespace string) string {
	return fmt.Sprintf("Runs are not enabled in namespace %s: an administrator sets controller.runs of the chart teams, "+
		"or binds the ClusterRole mlbatch-runs there", namespace)
}
