// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// appWrappersByAvoidance indexes the AppWrappers that avoid any node. They are few, and their
// status is all that is remembered of nodes that fail unrelated work.
const appWrappersByAvoidance = "avoids"

const avoidsNodes = "nodes"

func avoidanceOfAppWrapper(object client.Object) []string {
	if aw, ok := object.(*v1beta2.AppWrapper); ok && len(aw.Status.AvoidedNodes) > 0 {
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
	blames := blamesOf(client.ObjectKeyFromObject(aw), status)
	for i := range all.Items {
		if key := client.ObjectKeyFromObject(&all.Items[i]); key != client.ObjectKeyFromObject(aw) {
			blames = append(blames, blamesOf(key, all.Items[i].Status)...)
		}
	}
	return nodehealth.Suspects(blames, int(enough), r.now()), nil
}

func blamesOf(by types.NamespacedName, status v1beta2.AppWrapperStatus) []nodehealth.Blame {
	blames := make([]nodehealth.Blame, len(status.AvoidedNodes))
	for i, n := range status.AvoidedNodes {
		blames[i] = nodehealth.Blame{By: by, Node: n.Name, Cause: n.Cause, Until: n.Until.Time}
	}
	return blames
}

// observeSuspects is for an AppWrapper that may be about to begin an attempt. Of many suspects,
// those that most blame are enough, and those that it avoids anyway need no mention.
func (r *Reconciler) observeSuspects(ctx context.Context, o *observation) error {
	avoid := o.snapshot.Policy.Avoid
	if o.aw.Spec.Suspend || avoid.Nodes == 0 || !slices.Contains(beforeAttempts, o.aw.Status.Phase) {
		return nil
	}
	suspects, err := r.suspects(ctx, o.aw, o.aw.Status, avoid.SuspectAfter)
	suspects = slices.DeleteFunc(suspects, func(s nodehealth.Suspect) bool {
		return slices.ContainsFunc(o.aw.Status.AvoidedNodes, func(n v1beta2.AvoidedNode) bool { return n.Name == s.Node })
	})
	o.snapshot.Suspects = suspects[:min(len(suspects), int(avoid.Nodes))]
	return err
}

var beforeAttempts = []v1beta2.AppWrapperPhase{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResetting, v1beta2.AppWrapperResuming}

// forItsPods adds what only this AppWrapper's pods get.
func (o *observation) forItsPods(all podtemplate.Edit) podtemplate.Edit {
	for _, s := range o.snapshot.Suspects {
		all.DislikeNodes = append(all.DislikeNodes, s.Node)
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
		return slices.Contains(o.snapshot.Status.AvoidedNodes, n)
	})
	if len(news) == 0 {
		return nil
	}
	suspects, err := r.suspects(ctx, o.aw, d.Status, r.defaults.Avoid.SuspectAfter)
	for _, s := range suspects {
		if !slices.ContainsFunc(news, func(n v1beta2.AvoidedNode) bool { return n.Name == s.Node && n.Cause == s.Cause }) {
			continue
		}
		source, _, _ := strings.Cut(s.Cause, " ")
		r.metrics.suspicions.WithLabelValues(source).Inc()
		r.recorder.Eventf(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: s.Node}}, nil,
			corev1.EventTypeWarning, reasonFailsUnrelatedWork, actionAvoiding,
			"Pods of %d AppWrappers were rejected or did not start here lately, at last with %s. Other work prefers other nodes. Check the node, and cordon it if it is broken", s.By, s.Cause)
	}
	return err
}
