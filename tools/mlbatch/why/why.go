// SPDX-License-Identifier: Apache-2.0

// Package why reads the objects that explain judges, with few requests, whatever else is on the
// cluster. What the user may not read is named, and left out.
package why

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

// NotFoundError says that nothing has the name.
type NotFoundError struct {
	Target Target
	// Names are those that exist.
	Names []string
}

func (e NotFoundError) Error() string {
	kind := e.Target.Kind
	if kind == "" {
		kind = "AppWrapper, Run or queued job"
	}
	return fmt.Sprintf("there is no %s %s in namespace %s", kind, e.Target.Name, e.Target.Namespace)
}

// Explain reads what belongs to a target, and judges it.
func Explain(ctx context.Context, c client.Client, target Target, now time.Time) (explain.Explanation, error) {
	objects, err := ReadAll(ctx, c, target, now)
	if err != nil {
		return explain.Explanation{}, err
	}
	return explain.Explain(objects), nil
}

// Read reads what belongs to a target.
func Read(ctx context.Context, c client.Client, target Target, now time.Time) (explain.Objects, error) {
	r := gathering{client: c, target: target, Objects: explain.Objects{Absent: map[string]string{}, Now: now}}
	err := r.read(ctx)
	return r.Objects, err
}

// ReadAll also reads what the nodes have, if the target waits for that.
func ReadAll(ctx context.Context, c client.Client, target Target, now time.Time) (explain.Objects, error) {
	objects, err := Read(ctx, c, target, now)
	if err != nil {
		return objects, err
	}
	r := gathering{client: c, target: target, Objects: objects}
	r.readRoom(ctx)
	for i := range r.Steps {
		step := gathering{client: c, target: target, Objects: r.Steps[i].Objects}
		if len(step.Lacking()) > 0 { // one is enough to see that nodes are full
			step.readRoom(ctx)
			r.Unread, step.Unread = append(r.Unread, step.Unread...), nil
			r.Steps[i].Objects = step.Objects
			break
		}
	}
	return r.Objects, nil
}

type gathering struct {
	client client.Client
	target Target
	explain.Objects
	workloads []kueue.Workload
	// counted is set if all Workloads of the namespace were read.
	counted bool
	// denied is why AppWrappers cannot be read.
	denied error
}

func (r *gathering) read(ctx context.Context) error {
	if err := r.readSubject(ctx); err != nil {
		return err
	}
	r.readWorkloads(ctx)
	r.findWorkload()
	if err := r.mustExist(ctx); err != nil {
		return err
	}
	if r.Run != nil && len(r.Run.Status.Steps) > 0 {
		r.readSteps(ctx)
		return nil
	}
	r.readPriority(ctx)
	r.readQueues(ctx)
	r.readPods(ctx)
	return nil
}

// Find reads only the Run, the AppWrapper or the bare job itself, and the Workload of a bare job.
func Find(ctx context.Context, c client.Client, target Target) (explain.Objects, error) {
	r := &gathering{client: c, target: target, Objects: explain.Objects{Absent: map[string]string{}}}
	if err := r.readSubject(ctx); err != nil || r.Run != nil || r.AppWrapper != nil {
		return r.Objects, err
	}
	r.readWorkloads(ctx)
	r.findWorkload()
	return r.Objects, r.mustExist(ctx)
}

func (r *gathering) exists() bool { return r.Run != nil || r.AppWrapper != nil || r.Job != nil }

func (r *gathering) mustExist(ctx context.Context) error {
	switch {
	case r.exists():
		return nil
	case r.denied != nil:
		return r.denied
	}
	return r.notFound(ctx)
}

// readSubject looks for a Run, an AppWrapper or a bare job. If none has the name, the owner of a
// Workload may have it: see findWorkload.
func (r *gathering) readSubject(ctx context.Context) error {
	if b, known := bare[r.target.Kind]; known {
		return r.readJob(ctx, b.kind.GroupVersion().String(), b.kind.Kind)
	}
	for _, read := range []struct {
		kind, what string
		find       func(context.Context) error
	}{{"run", "Run", r.readRun}, {"appwrapper", "AppWrapper", r.readAppWrapper}} {
		if r.Run != nil || r.target.Kind != "" && r.target.Kind != read.kind {
			continue
		}
		if err := read.find(ctx); err != nil && !apierrors.IsNotFound(err) {
			failed := clusterstate.Failed(err, clusterstate.Request{Verb: "get", Resource: plural(read.what), Namespace: r.target.Namespace})
			if r.target.Kind != "" {
				return failed
			}
			r.unread(err, read.what+" "+r.target.Name)
			if read.kind == "appwrapper" {
				r.denied = failed
			}
		}
	}
	return nil
}

func (r *gathering) readJob(ctx context.Context, version, kind string) error {
	job := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}}
	err := r.client.Get(ctx, r.key(r.target.Name), job)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return clusterstate.Failed(err, clusterstate.Request{Verb: "get", Resource: plural(kind), Namespace: r.target.Namespace})
	}
	if name := job.Labels[v1beta2.AppWrapperLabel]; name != "" { // it is wrapped
		r.target.Name = name
		return client.IgnoreNotFound(r.readAppWrapper(ctx))
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	r.Job = &unstructured.Unstructured{Object: content}
	r.Job.SetAPIVersion(version)
	r.Job.SetKind(kind)
	return err
}

// readWorkloads reads all Workloads of the namespace: there is no way to request the one of an owner.
func (r *gathering) readWorkloads(ctx context.Context) {
	all, err := clusterstate.List[kueue.Workload](ctx, r.client, &kueue.WorkloadList{}, client.InNamespace(r.target.Namespace))
	r.workloads = all
	if err != nil {
		if apierrors.IsNotFound(err) { // a list that is served may be empty, and is never not found
			r.Absent["API"] = kueue.SchemeGroupVersion.Group
		}
		r.unread(err, "the Workloads, which say whether it has quota")
		return
	}
	r.counted = true
}

func (r *gathering) findWorkload() {
	if found, by := r.ownWorkload(); found != nil {
		r.own(found, by)
		return
	}
	if !r.counted {
		return
	}
	if r.AppWrapper != nil {
		r.Absent["Workload"] = "of AppWrapper " + r.AppWrapper.Name
	} else if r.Job != nil {
		r.Absent["Workload"] = "of " + r.Job.GetKind() + " " + r.Job.GetName()
	}
}

// ownWorkload is the Workload that counts of those that the work has, with its reference to the work.
func (r *gathering) ownWorkload() (found *kueue.Workload, by metav1.OwnerReference) {
	owner := r.owner()
	for i := range r.workloads {
		w := &r.workloads[i]
		for _, o := range w.OwnerReferences {
			if (o.UID == owner && owner != "" || r.named(o)) && (found == nil || Replaces(w, found)) {
				found, by = w, o
			}
		}
	}
	return found, by
}

// Replaces reports whether one Workload of some work counts, and not another. One that has not ended does, and else the
// younger one: Kueue makes another if the job changes, and for each slice of an elastic job.
func Replaces(one, other *kueue.Workload) bool {
	ended := func(w *kueue.Workload) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
	}
	if ended(one) != ended(other) {
		return ended(other)
	}
	return other.CreationTimestamp.Before(&one.CreationTimestamp)
}

// owner is the UID of what has the Workload.
func (r *gathering) owner() types.UID {
	switch {
	case r.AppWrapper != nil:
		return r.AppWrapper.UID
	case r.Job != nil:
		return r.Job.GetUID()
	}
	return ""
}

// named reports whether a job, of which only the name is known, has this Workload. That of an AppWrapper which is
// gone will go, too.
func (r *gathering) named(o metav1.OwnerReference) bool {
	leaves := o.Kind == wrapperKind.Kind && r.denied == nil
	return !r.exists() && r.target.Kind == "" && o.Name == r.target.Name && !leaves
}

func (r *gathering) own(w *kueue.Workload, o metav1.OwnerReference) {
	r.Workload = w
	if r.AppWrapper != nil || r.Job != nil {
		return
	}
	r.Job = BareJob(*w, o)
}

// BareJob is what a Workload says of the job that owns it.
func BareJob(w kueue.Workload, owner metav1.OwnerReference) *unstructured.Unstructured {
	job := &unstructured.Unstructured{}
	job.SetAPIVersion(owner.APIVersion)
	job.SetKind(owner.Kind)
	job.SetNamespace(w.Namespace)
	job.SetName(owner.Name)
	job.SetUID(owner.UID)
	job.SetLabels(map[string]string{v1beta2.QueueNameLabel: string(w.Spec.QueueName)})
	return job
}

func (r *gathering) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.target.Namespace, Name: name}
}

// unread says what could not be read, and why.
func (r *gathering) unread(err error, what string) {
	sentence := fmt.Sprintf("cannot read %s: %s", what, strings.Join(strings.Fields(err.Error()), " "))
	switch {
	case apierrors.IsForbidden(err):
		sentence = "you may not read " + what
	case apierrors.IsNotFound(err):
		sentence = "the cluster does not serve " + what
	}
	r.Unread = append(r.Unread, sentence)
}
