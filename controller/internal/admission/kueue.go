// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
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

// removePodSetInfos: a new AppWrapper has not been admitted. With podSetInfos for some of its
// components only, it would wait forever.
func removePodSetInfos(aw *v1beta2.AppWrapper) {
	for i := range aw.Spec.Components {
		aw.Spec.Components[i].PodSetInfos = nil
	}
}

// keepWhatWasWritten restores podSetInfos that a writer other than Kueue has changed: they are what Kueue admitted,
// and the next attempt needs them. Leaving them out is no error, because the original manifest, which anybody may
// apply again, has none. Nor does it have the pod sets that were declared on creation, or what was added to pod
// templates then. podSetInfos that come with a start stay for the validating webhook to judge: the writer may be a
// Kueue that is not configured here, and its work would run on any node. From a suspended AppWrapper they may be
// removed: with some of them it would wait forever.
func keepWhatWasWritten(stored, sent *v1beta2.AppWrapper) {
	if len(stored.Spec.Components) != len(sent.Spec.Components) {
		return // refused by validation
	}
	for i := range sent.Spec.Components {
		was, is := &stored.Spec.Components[i], &sent.Spec.Components[i]
		starts := unsuspends(stored, sent) && len(is.PodSetInfos) > 0
		freed := stored.Spec.Suspend && sent.Spec.Suspend && len(is.PodSetInfos) == 0
		if !starts && !freed {
			is.PodSetInfos = was.PodSetInfos
		}
		keepWhatWasAdded(was, is)
	}
}

// keepWhatWasAdded restores what creation has written into a component beside its author.
func keepWhatWasAdded(was, is *v1beta2.AppWrapperComponent) {
	if !bytes.Equal(is.Template.Raw, was.Template.Raw) && admissionrules.SameButForExtras(is, was) {
		is.Template = was.Template
	}
	if len(is.DeclaredPodSets) == 0 {
		is.DeclaredPodSets = was.DeclaredPodSets
	} else if recounted := recounted(is); equality.Semantic.DeepEqual(recounted, was.DeclaredPodSets) {
		is.DeclaredPodSets = recounted
	}
}

// keepFromNodes removes podSetInfos from a start that will be allowed: the verb unsuspend lets
// users start work without quota, but not choose its nodes.
func (d *defaulter) keepFromNodes(ctx context.Context, user authenticationv1.UserInfo, stored, sent *v1beta2.AppWrapper) {
	if !unsuspends(stored, sent) || !placed(stored, sent) || len(mayUnsuspend(ctx, d.review, user, sent, field.NewPath("spec", "suspend"))) > 0 {
		return
	}
	for i := range sent.Spec.Components {
		sent.Spec.Components[i].PodSetInfos = stored.Spec.Components[i].PodSetInfos
	}
}

// recounted are the declared pod sets as creation would have counted them.
func recounted(component *v1beta2.AppWrapperComponent) []v1beta2.AppWrapperPodSet {
	template, err := admissionrules.Template(component)
	if err != nil {
		return nil // refused by validation
	}
	return kinds.For(template.GroupVersionKind()).Recount(component.DeclaredPodSets, template)
}

// mustBeKept refuses what the mutating webhook would have restored. That webhook did not
// answer, which the API server ignores; the validating webhook must answer.
func mustBeKept(before, after *v1beta2.AppWrapper) field.ErrorList {
	kept := after.DeepCopy()
	keepWhatWasWritten(before, kept)
	if !placed(kept, after) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "components"),
		"only Kueue may change podSetInfos, and the mutating webhook that restores them did not answer: try again")}
}

// taken is the field in which an update decides what only Kueue may decide, or nil: it starts
// queued work, or leaves all queues so that a later update could, or chooses the nodes. Moving
// to another queue is allowed.
func (v *validator) taken(ctx context.Context, before, after *v1beta2.AppWrapper) *field.Path {
	switch {
	case unsuspends(before, after) && (queued(before) || queued(after) || placed(before, after) || v.waits(ctx, after.Namespace)):
		return field.NewPath("spec", "suspend")
	case queued(before) && !queued(after):
		return field.NewPath("metadata", "labels").Key(v1beta2.QueueNameLabel)
	}
	return nil
}

// waits tells whether Kueue decides when an AppWrapper without a queue starts.
func (v *validator) waits(ctx context.Context, namespace string) bool {
	return v.managed != nil && v.managed.waits(v.namespaces(ctx, namespace))
}

// arrivesStarted reports whether a new AppWrapper would run without waiting for quota. Kueue
// suspends what it manages, but not what claims to belong to other work that it manages.
func (v *validator) arrivesStarted(aw *v1beta2.AppWrapper, found namespace) bool {
	return !aw.Spec.Suspend && v.managed.waits(found)
}

func unsuspends(before, after *v1beta2.AppWrapper) bool {
	return before.Spec.Suspend && !after.Spec.Suspend
}

func queued(aw *v1beta2.AppWrapper) bool {
	_, named := aw.Labels[v1beta2.QueueNameLabel]
	return named
}

// placed tells whether an update changes podSetInfos.
func placed(before, after *v1beta2.AppWrapper) bool {
	if len(before.Spec.Components) != len(after.Spec.Components) {
		return false // refused by validation
	}
	for i, component := range after.Spec.Components {
		if !equality.Semantic.DeepEqual(component.PodSetInfos, before.Spec.Components[i].PodSetInfos) {
			return true
		}
	}
	return false
}

// mayUnsuspend checks for unsuspend, a verb of MLBatch that lets users start work without
// quota. Nobody has it unless an administrator grants it. The path is the field that changes.
func mayUnsuspend(ctx context.Context, review accessreview.Review, user authenticationv1.UserInfo, aw *v1beta2.AppWrapper, path *field.Path) field.ErrorList {
	question := accessreview.Of(user)
	question.Spec.ResourceAttributes = accessreview.On(aw.Namespace, "unsuspend", appWrappers)
	question.Spec.ResourceAttributes.Name = aw.Name
	if err := review(ctx, question); err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("cannot check whether %s may unsuspend it: %w", user.Username, err))}
	}
	if question.Status.Allowed {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("only Kueue may start queued work: user %q is not Kueue "+
		"(appwrapper.kueue.serviceAccounts in the controller's configuration) and lacks the verb unsuspend", user.Username))}
}
