// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// appWrappersByAvoidance indexes the AppWrappers that avoid any node, or failed on one. They are
// few, and their status is all that is remembered of nodes that fail unrelated work.
const appWrappersByAvoidance = "avoids"

const avoidsNodes = "nodes"

func avoidanceOfAppWrapper(object client.Object) []string {
	if aw, ok := object.(*v1beta2.AppWrapper); ok && (len(aw.Status.AvoidedNodes) > 0 || aw.Status.FailedNode != nil) {
		return []string{avoidsNodes}
	}
	return nil
}

// suspects are the nodes that fail unrelated work, by what the cache has of other AppWrappers, and
// by the status of this one.
func (r *Reconciler) suspects(ctx context.Context, aw *v1beta2.AppWrapper, status v1beta2.AppWrapperStatus, enough int32) ([]nodehealth.Suspect, error) {
	if enough == 0 {
		return nil, nil
	}
	all := &v1beta2.AppWrapperList{}
	if err := r.cached.List(ctx, all, client.MatchingFields{appWrappersByAvoidance: avoidsNodes}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the AppWrappers that avoid nodes: %w", err)
	}
	now := r.now()
	blames := nodehealth.Blames(client.ObjectKeyFromObject(aw), status, now)
	for i := range all.Items {
		if key := client.ObjectKeyFromObject(&all.Items[i]); key != client.ObjectKeyFromObject(aw) {
			blames = append(blames, nodehealth.Blames(key, all.Items[i].Status, now)...)
		}
	}
	return nodehealth.Suspects(blames, int(enough), now), nil
}

// observeSuspects is for an AppWrapper that may be about to begin an attempt, or to end one as the last ended. Those
// that it avoids anyway need no mention.
func (r *Reconciler) observeSuspects(ctx context.Context, o *observation) error {
	avoid := o.snapshot.Policy.Avoid
	again := o.aw.Status.Phase == v1beta2.AppWrapperRunning && len(o.aw.Status.LastAttempts) > 0
	begins := avoid.Nodes > 0 && slices.Contains(beforeAttempts, o.aw.Status.Phase)
	if o.aw.Spec.Suspend || !again && !begins {
		return nil
	}
	suspects, err := r.suspects(ctx, o.aw, o.aw.Status, avoid.SuspectAfter)
	o.snapshot.Suspects = slices.DeleteFunc(suspects, func(s nodehealth.Suspect) bool {
		return slices.ContainsFunc(o.aw.Status.AvoidedNodes, func(n v1beta2.AvoidedNode) bool { return n.Name == s.Node })
	})
	return err
}

var beforeAttempts = []v1beta2.AppWrapperPhase{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResetting, v1beta2.AppWrapperResuming}

// forItsPods adds what only this AppWrapper's pods get. Where its program failed is the last choice,
// too: whether it does better elsewhere tells whether the node is to blame.
func (o *observation) forItsPods(all podtemplate.Edit) podtemplate.Edit {
	for _, s := range o.snapshot.Disliked() {
		all.DislikeNodes = append(all.DislikeNodes, s.Node)
	}
	if failed := o.aw.Status.FailedNode; failed != nil && o.snapshot.Policy.Avoid.Nodes > 0 && !slices.Contains(all.DislikeNodes, failed.Name) {
		all.DislikeNodes = append(all.DislikeNodes, failed.Name)
	}
	return all
}

const (
	reasonFailsUnrelatedWork = "FailsUnrelatedWork"
	actionAvoiding           = "Avoiding"
)

// reportSuspects tells administrators, at each AppWrapper that a node fails, if it has failed
// enough others.
func (r *Reconciler) reportSuspects(ctx context.Context, o *observation, d lifecycle.Decision) error {
	news := slices.DeleteFunc(slices.Clone(d.Status.AvoidedNodes), func(n v1beta2.AvoidedNode) bool {
		return slices.ContainsFunc(o.snapshot.Status.AvoidedNodes, func(known v1beta2.AvoidedNode) bool {
			return known.Name == n.Name && known.Cause == n.Cause && known.Until.Equal(&n.Until)
		})
	})
	if len(news) == 0 {
		return nil
	}
	suspects, err := r.suspects(ctx, o.aw, d.Status, r.defaults.Avoid.SuspectAfter)
	for _, s := range suspects {
		if !slices.ContainsFunc(news, func(n v1beta2.AvoidedNode) bool { return n.Name == s.Node && n.Cause == s.Cause }) {
			continue
		}
		r.tellSuspect(s)
	}
	return err
}

// reportFailures does the same when it is known that this AppWrapper, whose program failed on a
// node, does well elsewhere.
func (r *Reconciler) reportFailures(ctx context.Context, o *observation, d lifecycle.Decision) error {
	if at, known := nodehealth.Proven(d.Status); !known || r.now().Before(at) || !r.now().Before(d.Status.FailedNode.Until.Time) {
		return nil
	}
	suspects, err := r.suspects(ctx, o.aw, d.Status, r.defaults.Avoid.SuspectAfter)
	if err != nil {
		return err // what was told stays known
	}
	suspects = slices.DeleteFunc(suspects, func(s nodehealth.Suspect) bool { return s.Source() != nodehealth.PodFailed })
	for _, s := range r.failures.news(suspects) {
		r.tellSuspect(s)
	}
	return nil
}

// untilProven is how long it takes until a failure says something about its node; 0 if it may never.
// Nothing else causes a look then.
func untilProven(status v1beta2.AppWrapperStatus, now time.Time) time.Duration {
	at, known := nodehealth.Proven(status)
	if !known || at.After(status.FailedNode.Until.Time) {
		return 0
	}
	return max(at.Sub(now), 0)
}

func (r *Reconciler) tellSuspect(s nodehealth.Suspect) {
	r.metrics.suspicions.WithLabelValues(string(s.Source())).Inc()
	r.recorder.Eventf(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: s.Node}}, nil,
		corev1.EventTypeWarning, reasonFailsUnrelatedWork, actionAvoiding,
		"Pods of %d AppWrappers were rejected or did not start here lately, or failed here only, at last with %s. Other work prefers other nodes. Check the node, and cordon it if it is broken", s.By, s.Cause)
}

// toldFailures are the nodes of which it was told that programs fail there, with by how many
// AppWrappers that was known. Every look at work that runs elsewhere finds them again.
type toldFailures struct {
	mu sync.Mutex
	by map[string]int
}

// news are those that more AppWrappers blame than when they were told.
func (t *toldFailures) news(suspects []nodehealth.Suspect) []nodehealth.Suspect {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.by
	t.by = map[string]int{}
	for _, s := range suspects {
		t.by[s.Node] = s.By
	}
	return slices.DeleteFunc(suspects, func(s nodehealth.Suspect) bool { return s.By <= before[s.Node] })
}
