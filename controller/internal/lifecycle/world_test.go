// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// world is a cluster in memory with one AppWrapper and its own clock. It plays everything but
// the controller: the API server with its resourceVersions, the owners of the pods, the
// kubelet, and Kueue's bookkeeping.
type world struct {
	now, born time.Time

	// The AppWrapper as the API server has it.
	suspend, deleting, hasFinalizer, gone bool
	deletedAt                             time.Time
	// guarded means that others have a finalizer, too.
	guarded         bool
	status          v1beta2.AppWrapperStatus
	policy          lifecycle.Policy
	resourceVersion int

	resources []*resource
	pods      []*pod
	evictions []lifecycle.Eviction
	made      int // pods created so far, for their names
	looks     int // of the controller

	// stopped means that no controller runs.
	stopped bool

	// dryRun is what the controller remembers of creations with dry run.
	dryRun lifecycle.DryRun

	// quota is true while Kueue reserves quota for the AppWrapper.
	quota bool
	// waits is why it does not, and kueue is what it says besides.
	waits quotareason.Reason
	kueue quotareason.Word
	// wake is when the controller asked to look again; zero is never.
	wake time.Time

	// notes receives events for the transcript of a story.
	notes func(who, what string)
	// broken receives broken promises. tested counts how often each was tested.
	broken func(promise string)
	tested map[string]int
	past   past
	// crash is called after every save and every effect, and reports whether the controller
	// crashes.
	crash func() bool
	// stale is called before every look, and reports whether a look at an old observation comes
	// first.
	stale func() bool
	old   observation

	// reserved is since when Kueue reserves the quota. claimed means that the AppWrapper has claimed
	// it, and claimedFor is for how long Kueue reserved quota before that was claimed.
	reserved   time.Time
	claimed    bool
	claimedFor time.Duration

	// watcherGone is since when nobody says whether pods use their devices; zero: somebody does.
	watcherGone time.Time

	// visited has the phases that the AppWrapper went through. refused and removed report
	// whether the API server refused, or a user removed, a component.
	visited          map[v1beta2.AppWrapperPhase]bool
	refused, removed bool
	// shell, if not nil, stands between this world and the decisions.
	shell *shell
}

// resource is one wrapped resource, deployed or not.
type resource struct {
	kind       string
	name       string
	replicas   int32
	reportsEnd bool
	// unlabelled means that its pods do not say which component they belong to.
	unlabelled bool
	// replaces means that the owner replaces failed pods.
	replaces bool

	exists, terminating bool
	// uid distinguishes incarnations.
	uid int
	// stubborn means that a finalizer keeps the resource when it is deleted.
	stubborn bool
	verdict  kinds.Verdict
	// stray means that it was created without quota, after its attempt.
	stray bool
	// refusal is the API server's answer to a create.
	refusal *lifecycle.Refusal
}

type pod struct {
	lifecycle.Pod
	// node is the node of only this pod. It never changes.
	node string
	// foreign means that somebody labelled the pod, so that no component has made it.
	foreign bool
	// stray means that a component has made it that was created without quota.
	stray bool
	// works means that the pod uses its devices again, which nobody has said yet.
	works bool
	// stuck means that the pod's kubelet is gone, so that the pod never stops.
	stuck bool
}

func job(name string, replicas int32) *resource {
	return &resource{kind: "Job", name: name, replicas: replicas, reportsEnd: true}
}

func pyTorchJob(name string, replicas int32) *resource {
	return &resource{kind: "PyTorchJob", name: name, replicas: replicas, reportsEnd: true}
}

// custom is a resource of an unknown kind with declared pods.
func custom(name string, replicas int32) *resource {
	return &resource{kind: "Custom", name: name, replicas: replicas}
}

func service(name string) *resource {
	return &resource{kind: "Service", name: name}
}

// born is when every AppWrapper is created.
var born = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func newWorld(policy lifecycle.Policy, resources ...*resource) *world {
	return &world{
		now: born, born: born,
		suspend: true, policy: policy, resources: resources,
		notes:   func(string, string) {},
		broken:  func(string) {},
		crash:   func() bool { return false },
		stale:   func() bool { return false },
		tested:  map[string]int{},
		visited: map[v1beta2.AppWrapperPhase]bool{},
	}
}

func standardPolicy() lifecycle.Policy {
	policy, _ := lifecycle.ParsePolicy(nil, lifecycle.StandardDefaults())
	return policy
}

// observation is what an observer saw, and what the API server needs to detect that it is
// outdated.
type observation struct {
	lifecycle.Snapshot
	resourceVersion int
	uids            []int
	pods            []*pod
}

// observe returns what an observer sees now.
func (w *world) observe() observation {
	o := observation{resourceVersion: w.resourceVersion, pods: slices.Clone(w.pods)}
	o.Suspend, o.Deleting, o.HasFinalizer, o.Waits = w.suspend, w.deleting, w.hasFinalizer, w.waits
	o.Kueue = w.kueue
	o.Evictions = slices.Clone(w.evictions)
	known := w.dryRun
	o.DryRun = &known
	o.DeletedAt, o.LastFinalizer = w.deletedAt, w.hasFinalizer && !w.guarded
	o.Status, o.Policy = *w.status.DeepCopy(), w.policy
	for _, r := range w.resources {
		o.Components = append(o.Components, r.observe())
		o.uids = append(o.uids, r.uid)
	}
	for _, p := range w.pods {
		seen := p.Pod
		seen.IdleSeen = w.idleSeen(seen)
		if p.foreign || w.resources[p.Component].unlabelled {
			seen.Component = lifecycle.UnknownComponent
		}
		o.Pods = append(o.Pods, seen)
	}
	return o
}

// idleSeen is when somebody said last that the pod does not use its devices.
func (w *world) idleSeen(p lifecycle.Pod) time.Time {
	switch {
	case p.IdleSince.IsZero():
		return time.Time{}
	case w.watcherGone.IsZero():
		return w.now
	}
	return w.watcherGone
}

// clone returns a snapshot that shares nothing with s that a decision could change.
func clone(s lifecycle.Snapshot) lifecycle.Snapshot {
	s.Status = *s.Status.DeepCopy()
	s.Components, s.Pods, s.Evictions = slices.Clone(s.Components), slices.Clone(s.Pods), slices.Clone(s.Evictions)
	return s
}

func (r *resource) observe() lifecycle.Component {
	c := lifecycle.Component{Name: r.name, Kind: r.kind, APIVersion: "v1", ReportsEnd: r.reportsEnd}
	if r.replicas > 0 {
		c.PodSets = []v1beta2.AppWrapperPodSet{{Path: "template.spec.template", Replicas: &r.replicas}}
	}
	if r.exists {
		c.Exists, c.Terminating, c.Verdict = true, r.terminating, r.verdict
		if r.stubborn {
			c.Finalizers = []string{"example.com/held"}
		}
	}
	return c
}

// look is one reconcile of a current or earlier observation. It reports whether to look again.
func (w *world) look(o observation) (again bool) {
	w.wake = time.Time{}
	if w.gone || w.stopped {
		return false
	}
	before := clone(o.Snapshot)
	w.looks++
	d := lifecycle.Decide(o.Snapshot, w.now)
	if d.Requeue > 0 {
		w.wake = w.now.Add(d.Requeue)
	}
	saved := !same(d.Status, o.Status)
	w.witness(decides, moment{seen: o, before: before, decision: d, writes: saved})
	if saved {
		if o.resourceVersion != w.resourceVersion {
			return true // a conflict
		}
		d.Status.Usage = ledger.Post(o.Status, d.Status, ledger.Facts{Reserved: w.reserved, Checkpoint: w.policy.LastCheckpoint, Deleted: w.deletedAt}, w.now)
		w.save(d.Status)
		o.resourceVersion = w.resourceVersion
		if w.crash() {
			return true
		}
	}
	if d.Event != nil {
		w.notes("controller", fmt.Sprintf("announces %s %s: %s", d.Event.Type, d.Event.Reason, d.Event.Message))
	}
	return w.act(d, o) || saved
}

func (w *world) save(status v1beta2.AppWrapperStatus) {
	was := w.status
	w.noteStatus(was, status)
	w.status = *status.DeepCopy()
	w.resourceVersion++
	w.visited[status.Phase] = true
	w.remember(was)
	w.accountForTime()
	w.accountForQuota()
	w.witness(saves, moment{was: was})
	if status.Phase != was.Phase {
		w.past.entered = w.now
	}
}

func (w *world) quotaIsClaimed() bool {
	return meta.IsStatusConditionTrue(w.status.Conditions, string(v1beta2.QuotaReserved))
}

// claimedUntilNow is for how long Kueue reserved quota that the AppWrapper claimed.
func (w *world) claimedUntilNow() time.Duration {
	if !w.claimed {
		return w.claimedFor
	}
	return w.claimedFor + w.now.Sub(w.reserved)
}

// accountForTime: what Kueue reserves after the AppWrapper has given its quota back is another quota.
func (w *world) accountForTime() {
	if w.claimed && !w.quotaIsClaimed() {
		w.claimedFor, w.reserved = w.claimedUntilNow(), w.now
	}
	w.claimed = w.quotaIsClaimed()
}

// atOnce is for an AppWrapper that need not wait for quota.
func (w *world) atOnce() { w.suspend, w.quota, w.reserved = false, true, w.now }

// removing reports whether what was deployed is being removed.
func (w *world) removing() bool {
	return w.deleting || meta.IsStatusConditionTrue(w.status.Conditions, string(v1beta2.DeletingResources))
}

// accountForQuota plays Kueue's bookkeeping: quota stays reserved until the AppWrapper says
// otherwise, has finished, or does not exist.
func (w *world) accountForQuota() {
	if !w.quota || !w.gone && !w.finished() && (w.quotaIsClaimed() || !w.suspend) {
		return
	}
	w.quota = false
	w.notes("Kueue", "gives the quota to others")
	w.witness(frees, moment{})
}

// finished reports whether Kueue regards the AppWrapper as finished.
func (w *world) finished() bool {
	deployed := meta.IsStatusConditionTrue(w.status.Conditions, string(v1beta2.ResourcesDeployed))
	return w.status.Phase == v1beta2.AppWrapperSucceeded || w.status.Phase == v1beta2.AppWrapperFailed && !deployed
}

func usesQuota(p *pod) bool {
	return !p.stray && (p.Phase == corev1.PodPending || p.Phase == corev1.PodRunning)
}

// act carries out the effect of a decision and reports whether it changed anything.
func (w *world) act(d lifecycle.Decision, o observation) bool {
	switch d.Effect {
	case lifecycle.AddFinalizer:
		return w.setFinalizer(true, o)
	case lifecycle.RemoveFinalizer:
		return w.setFinalizer(false, o)
	case lifecycle.Create:
		return w.create(d.Targets, o)
	case lifecycle.TryCreate:
		return w.tryCreate(d.Targets, o)
	case lifecycle.Delete:
		return w.delete(d.Targets, o)
	case lifecycle.ForceDelete:
		return w.forceDelete(d.Targets, o)
	case lifecycle.GiveBack, lifecycle.Reassign:
		return w.giveBack(o)
	}
	return false
}

// giveBack asks Kueue, which suspends the AppWrapper.
func (w *world) giveBack(o observation) bool {
	if o.resourceVersion != w.resourceVersion {
		return true
	}
	w.notes("controller", "asks Kueue to take the quota back")
	if !w.suspend {
		w.notes("Kueue", "evicts it")
		w.Evict()
	}
	w.crash()
	return true
}

func (w *world) setFinalizer(guarded bool, o observation) bool {
	if w.hasFinalizer == guarded || o.resourceVersion != w.resourceVersion {
		return false
	}
	w.notes("controller", map[bool]string{true: "adds its finalizer", false: "removes its finalizer"}[guarded])
	w.hasFinalizer = guarded
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

func (w *world) create(targets []int, o observation) bool {
	if o.resourceVersion != w.resourceVersion {
		return true // the AppWrapper has changed
	}
	created := false
	for _, i := range targets {
		r := w.resources[i]
		if r.exists {
			continue
		}
		w.witness(creates, moment{})
		if r.refusal != nil {
			w.notes("API server", fmt.Sprintf("refuses %s %q: %s", r.kind, r.name, r.refusal.Message))
			w.refused = true
			refused := lifecycle.Refuse(w.status, i, *r.refusal, w.now)
			deployed := meta.FindStatusCondition(refused.ComponentStatus[i].Conditions, string(v1beta2.ResourcesDeployed))
			w.past.rejected = w.past.rejected || deployed.Reason == v1beta2.ReasonComponentCreationRejected
			w.past.refuse(w.now, r.refusal.Unanswered)
			w.save(refused)
			return true
		}
		w.notes("controller", fmt.Sprintf("creates %s %q", r.kind, r.name))
		r.exists, r.terminating, r.stray, r.verdict = true, false, false, kinds.Unknown
		r.uid++
		created = true
		if w.crash() {
			return true
		}
	}
	if w.shell != nil {
		w.shell.woken = true // some kinds are not watched
	}
	return created
}

// tryCreate plays the API server's answer to creations with dry run. A refusal that may pass proves nothing.
func (w *world) tryCreate(targets []int, o observation) bool {
	if o.resourceVersion != w.resourceVersion {
		return true // the AppWrapper has changed
	}
	if w.shell != nil {
		w.shell.woken = true // the answer is no event
	}
	w.notes("controller", "asks whether its components can be created")
	for _, i := range targets {
		r := w.resources[i]
		if refusal := r.refusal; refusal != nil && (refusal.Final || refusal.Denied) {
			w.notes("API server", fmt.Sprintf("refuses %s %q with dry run: %s", r.kind, r.name, refusal.Message))
			w.refused = true
			w.dryRun = w.dryRun.Answered(i, refusal, w.now)
			w.past.rejected = w.past.rejected || w.dryRun.Refusal.Final
			return true
		}
	}
	w.dryRun = w.dryRun.Answered(0, nil, w.now)
	return true
}

func (w *world) delete(targets []int, o observation) bool {
	if o.resourceVersion != w.resourceVersion {
		return true // the AppWrapper has changed
	}
	deleted := false
	for _, i := range targets {
		r := w.resources[i]
		if !r.exists || r.terminating || r.uid != o.uids[i] {
			continue
		}
		w.notes("controller", fmt.Sprintf("deletes %s %q", r.kind, r.name))
		r.terminating = true
		deleted = true
		if w.crash() {
			return true
		}
	}
	return deleted
}

func (w *world) forceDelete(targets []int, o observation) bool {
	if o.resourceVersion != w.resourceVersion {
		return true
	}
	w.witness(forces, moment{seen: o})
	if len(o.pods) > 0 {
		w.notes("controller", fmt.Sprintf("deletes %d pods by force", len(o.pods)))
		before := len(w.pods)
		w.pods = slices.DeleteFunc(w.pods, func(p *pod) bool { return slices.Contains(o.pods, p) })
		return len(w.pods) != before
	}
	return w.delete(targets, o)
}
