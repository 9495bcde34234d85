// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// world is a cluster in memory with one AppWrapper in it and a clock that moves when
// it is told to. It plays everybody else: the API server with its resourceVersions,
// the owners of the pods, the kubelet, and what Kueue believes about the quota.
type world struct {
	now, born time.Time

	// The AppWrapper as the API server has it.
	suspend, deleting, guarded, gone bool
	status                           v1beta2.AppWrapperStatus
	policy                           lifecycle.Policy
	resourceVersion                  int

	resources []*resource
	pods      []*pod
	made      int // pods made so far, for their names

	// quota is held for the AppWrapper, as Kueue sees it.
	quota bool
	// wake is when the controller asked to look again; zero is never.
	wake time.Time

	// notes receives what happens, for the transcript of a story.
	notes func(who, what string)
	// broken receives promises that were broken.
	broken func(promise string)
	// crash is asked after every save and every single effect.
	crash func() bool
}

// resource is one wrapped resource, deployed or not.
type resource struct {
	kind       string
	name       string
	replicas   int32
	reportsEnd bool
	// replaces: the owner makes a new pod for one that has failed.
	replaces bool

	exists, terminating bool
	// stubborn: a finalizer keeps it when it is deleted.
	stubborn bool
	verdict  kinds.Verdict
	// refusal is what the API server will say to a create.
	refusal *lifecycle.Refusal
}

type pod struct {
	lifecycle.Pod
	// stuck: the pod's kubelet is gone, so that it never stops by itself.
	stuck bool
}

func job(name string, replicas int32) *resource {
	return &resource{kind: "Job", name: name, replicas: replicas, reportsEnd: true}
}

func pyTorchJob(name string, replicas int32) *resource {
	return &resource{kind: "PyTorchJob", name: name, replicas: replicas, reportsEnd: true}
}

// custom is a resource of a kind that the controller does not know, with declared pods.
func custom(name string, replicas int32) *resource {
	return &resource{kind: "Custom", name: name, replicas: replicas}
}

func service(name string) *resource {
	return &resource{kind: "Service", name: name}
}

func newWorld(policy lifecycle.Policy, resources ...*resource) *world {
	born := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	return &world{
		now: born, born: born,
		suspend: true, policy: policy, resources: resources,
		notes:  func(string, string) {},
		broken: func(string) {},
		crash:  func() bool { return false },
	}
}

func standardPolicy() lifecycle.Policy {
	policy, _ := lifecycle.ParsePolicy(nil, lifecycle.StandardDefaults())
	return policy
}

// snapshot is what an observer sees now.
func (w *world) snapshot() lifecycle.Snapshot {
	s := lifecycle.Snapshot{
		Suspend: w.suspend, Deleting: w.deleting, Guarded: w.guarded,
		Status: *w.status.DeepCopy(), Policy: w.policy,
	}
	for _, r := range w.resources {
		c := lifecycle.Component{Name: r.name, Kind: r.kind, APIVersion: "v1", ReportsEnd: r.reportsEnd}
		if r.replicas > 0 {
			c.PodSets = []v1beta2.AppWrapperPodSet{{Path: "template.spec.template", Replicas: &r.replicas}}
		}
		if r.exists {
			c.Exists, c.Terminating, c.Verdict = true, r.terminating, r.verdict
		}
		s.Components = append(s.Components, c)
	}
	for _, p := range w.pods {
		s.Pods = append(s.Pods, p.Pod)
	}
	return s
}

// look is one reconcile on what was observed earlier, at that resourceVersion. It
// tells whether anything changed.
func (w *world) look(s lifecycle.Snapshot, resourceVersion int) (changed bool) {
	if w.gone {
		return false
	}
	d := lifecycle.Decide(s, w.now)
	w.wake = time.Time{}
	if d.Requeue > 0 {
		w.wake = w.now.Add(d.Requeue)
	}
	if !equality.Semantic.DeepEqual(d.Status, s.Status) {
		if resourceVersion != w.resourceVersion {
			return true // a conflict: look again
		}
		w.save(d.Status)
		changed = true
		resourceVersion = w.resourceVersion
		if w.crash() {
			return true
		}
	}
	if d.Event != nil {
		w.notes("controller", fmt.Sprintf("announces %s %s: %s", d.Event.Type, d.Event.Reason, d.Event.Message))
	}
	return w.act(d, resourceVersion) || changed
}

func (w *world) save(status v1beta2.AppWrapperStatus) {
	w.noteStatus(w.status, status)
	w.status = *status.DeepCopy()
	w.resourceVersion++
	w.accountForQuota()
	if w.status.Retries > w.policy.RetryLimit {
		w.broken("retries stay within the limit")
	}
}

// accountForQuota is Kueue's view: what it gave is held until the AppWrapper says that
// it is not, or has finished, or does not exist.
func (w *world) accountForQuota() {
	reserved := meta.IsStatusConditionTrue(w.status.Conditions, string(v1beta2.QuotaReserved))
	deployed := meta.IsStatusConditionTrue(w.status.Conditions, string(v1beta2.ResourcesDeployed))
	finished := w.status.Phase == v1beta2.AppWrapperSucceeded || w.status.Phase == v1beta2.AppWrapperFailed && !deployed
	if !w.quota || !w.gone && !finished && (reserved || !w.suspend) {
		return
	}
	w.quota = false
	w.notes("Kueue", "gives the quota to others")
	if slices.ContainsFunc(w.pods, usesQuota) {
		w.broken("quota is given back only when no pod is Pending or Running")
	}
}

func usesQuota(p *pod) bool {
	return p.Phase == corev1.PodPending || p.Phase == corev1.PodRunning
}

// act carries out the effect of a decision and tells whether it changed anything.
func (w *world) act(d lifecycle.Decision, resourceVersion int) bool {
	switch d.Effect {
	case lifecycle.Guard:
		return w.setGuarded(true)
	case lifecycle.Release:
		return w.setGuarded(false)
	case lifecycle.Create:
		return w.create(d.Targets, resourceVersion)
	case lifecycle.Delete:
		return w.delete(d.Targets)
	case lifecycle.ForceDelete:
		return w.forceDelete(d.Targets)
	}
	return false
}

func (w *world) setGuarded(guarded bool) bool {
	if w.guarded == guarded {
		return false
	}
	w.notes("controller", map[bool]string{true: "adds its finalizer", false: "removes its finalizer"}[guarded])
	w.guarded = guarded
	w.resourceVersion++
	if w.deleting && !guarded {
		w.disappear()
	}
	return true
}

func (w *world) disappear() {
	w.gone = true
	w.notes("API server", "the AppWrapper is gone")
	w.accountForQuota()
}

func (w *world) create(targets []int, resourceVersion int) bool {
	if resourceVersion != w.resourceVersion {
		return true // the AppWrapper has changed: look again
	}
	changed := false
	for _, i := range targets {
		r := w.resources[i]
		if r.exists {
			continue
		}
		if !w.quota {
			w.broken("nothing is created without quota")
		}
		if r.refusal != nil {
			w.notes("API server", fmt.Sprintf("refuses %s %q: %s", r.kind, r.name, r.refusal.Message))
			w.save(lifecycle.Refuse(w.status, i, *r.refusal, w.now))
			return true
		}
		w.notes("controller", fmt.Sprintf("creates %s %q", r.kind, r.name))
		r.exists, r.terminating, r.verdict = true, false, kinds.Unknown
		changed = true
		if w.crash() {
			return true
		}
	}
	return changed
}

func (w *world) delete(targets []int) bool {
	changed := false
	for _, i := range targets {
		r := w.resources[i]
		if !r.exists || r.terminating {
			continue
		}
		w.notes("controller", fmt.Sprintf("deletes %s %q", r.kind, r.name))
		r.terminating = true
		changed = true
		if w.crash() {
			return true
		}
	}
	return changed
}

func (w *world) forceDelete(targets []int) bool {
	if len(w.pods) > 0 {
		w.notes("controller", fmt.Sprintf("deletes %d pods by force", len(w.pods)))
		w.pods = nil
		return true
	}
	changed := w.delete(targets)
	for _, i := range targets {
		if r := w.resources[i]; r.exists && !r.stubborn {
			w.notes("controller", fmt.Sprintf("deletes %s %q by force", r.kind, r.name))
			r.exists, r.terminating = false, false
			changed = true
		}
	}
	return changed
}
