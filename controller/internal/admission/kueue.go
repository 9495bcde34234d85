// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
)

// users are the names under which service accounts call the API server. An account
// is "namespace/name", or a name in the namespace own.
func users(accounts []string, own string) sets.Set[string] {
	names := sets.New[string]()
	for _, account := range accounts {
		namespace, name, named := strings.Cut(account, "/")
		if !named {
			namespace, name = own, account
		}
		names.Insert("system:serviceaccount:" + namespace + ":" + name)
	}
	return names
}

// removePodSetInfos: nobody has admitted what is only now created. With podSetInfos for
// some components and not for others it would wait for ever.
func removePodSetInfos(aw *v1beta2.AppWrapper) {
	for i := range aw.Spec.Components {
		aw.Spec.Components[i].PodSetInfos = nil
	}
}

// keepWhatWasWritten undoes what a writer other than Kueue has made of podSetInfos: they
// are what Kueue admitted, and the next attempt needs them. It is no error to leave them
// out, because the original manifest, which anybody may apply again at any time, has
// none. Nor does it have the pod sets that were declared when it was created. What comes
// with a start is kept for the validating webhook to judge: the writer may be a Kueue that
// nobody told us of, and its work would run on any nodes. What waits has no nodes yet, and
// may be freed of a part of them, with which it would wait for ever.
func keepWhatWasWritten(stored, sent *v1beta2.AppWrapper) {
	if len(stored.Spec.Components) != len(sent.Spec.Components) {
		return // is refused anyway
	}
	for i := range sent.Spec.Components {
		was, is := &stored.Spec.Components[i], &sent.Spec.Components[i]
		starts := unsuspends(stored, sent) && len(is.PodSetInfos) > 0
		freed := stored.Spec.Suspend && sent.Spec.Suspend && len(is.PodSetInfos) == 0
		if !starts && !freed {
			is.PodSetInfos = was.PodSetInfos
		}
		if len(is.DeclaredPodSets) == 0 {
			is.DeclaredPodSets = was.DeclaredPodSets
		} else if recounted := recounted(is); equality.Semantic.DeepEqual(recounted, was.DeclaredPodSets) {
			is.DeclaredPodSets = recounted
		}
	}
}

// keepFromNodes takes podSetInfos from a start that will be allowed: with the verb unsuspend
// work is started without quota, and nodes stay Kueue's to choose.
func (d *defaulter) keepFromNodes(ctx context.Context, user authenticationv1.UserInfo, stored, sent *v1beta2.AppWrapper) {
	if !unsuspends(stored, sent) || !placed(stored, sent) || len(mayUnsuspend(ctx, d.review, user, sent, field.NewPath("spec", "suspend"))) > 0 {
		return
	}
	for i := range sent.Spec.Components {
		sent.Spec.Components[i].PodSetInfos = stored.Spec.Components[i].PodSetInfos
	}
}

// recounted are the pod sets that creation would have made of the declared ones.
func recounted(component *v1beta2.AppWrapperComponent) []v1beta2.AppWrapperPodSet {
	template, err := admissionrules.Template(component)
	if err != nil {
		return nil // is refused anyway
	}
	return kinds.For(template.GroupVersionKind()).Recount(component.DeclaredPodSets, template)
}

// mustBeKept refuses what the mutating webhook would have undone. It was not called: the
// API server goes on without an answer to it, but not without one to this.
func mustBeKept(before, after *v1beta2.AppWrapper) field.ErrorList {
	kept := after.DeepCopy()
	keepWhatWasWritten(before, kept)
	if !placed(kept, after) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "components"),
		"podSetInfos are Kueue's, and the webhook that puts them back has not answered: try again")}
}

// taken is the field in which an update takes from Kueue what is Kueue's to decide, or
// nil: it starts work that waits in a queue, or leaves all queues so that a later update
// could, or chooses the nodes. To move to another queue is to wait there.
func (v *validator) taken(ctx context.Context, before, after *v1beta2.AppWrapper) *field.Path {
	switch {
	case unsuspends(before, after) && (queued(before) || queued(after) || placed(before, after) || v.managed.waits(ctx, after)):
		return field.NewPath("spec", "suspend")
	case queued(before) && !queued(after):
		return field.NewPath("metadata", "labels").Key(v1beta2.QueueNameLabel)
	}
	return nil
}

func unsuspends(before, after *v1beta2.AppWrapper) bool {
	return before.Spec.Suspend && !after.Spec.Suspend
}

func queued(aw *v1beta2.AppWrapper) bool {
	_, named := aw.Labels[v1beta2.QueueNameLabel]
	return named
}

// placed tells whether an update writes podSetInfos.
func placed(before, after *v1beta2.AppWrapper) bool {
	if len(before.Spec.Components) != len(after.Spec.Components) {
		return false // is refused anyway
	}
	for i, component := range after.Spec.Components {
		if !equality.Semantic.DeepEqual(component.PodSetInfos, before.Spec.Components[i].PodSetInfos) {
			return true
		}
	}
	return false
}

// mayUnsuspend: unsuspend is a verb of ours, for people who may start work without
// quota. Nobody has it unless an administrator says so. The path is what they change.
func mayUnsuspend(ctx context.Context, review accessReview, user authenticationv1.UserInfo, aw *v1beta2.AppWrapper, path *field.Path) field.ErrorList {
	question := newReview(user, aw.Namespace, "unsuspend", v1beta2.GroupVersion.WithResource("appwrappers"))
	question.Spec.ResourceAttributes.Name = aw.Name
	if err := review(ctx, question); err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("cannot ask whether %s may unsuspend it: %w", user.Username, err))}
	}
	if question.Status.Allowed {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("Kueue starts what is in a queue, and user %q neither is Kueue "+
		"(appwrapper.kueue.serviceAccounts in the controller's configuration) nor has the verb unsuspend", user.Username))}
}
