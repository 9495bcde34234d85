// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// podsOnUnhealthyNodes: pods use unhealthy resources of their nodes. The workload is reset,
// to run elsewhere. It has done nothing wrong, so this is no retry but a migration, which has
// a limit of its own because pods may be scheduled to such nodes again. At the limit the
// workload stays as long as it can, which is better than a failure, and one event says so.
func podsOnUnhealthyNodes(v *view) (Decision, bool) {
	nodes := v.nodesToMigrateFrom()
	if len(nodes) == 0 {
		v.clear(v1beta2.OnUnhealthyNodes, v1beta2.ReasonNodesHealthy, "")
		return Decision{}, false
	}
	if v.retryIsPointless() {
		return Decision{}, false
	}
	message := "pods must migrate from nodes with unhealthy resources: " + described(nodes)
	if v.status.Migrations < v.Policy.MigrationLimit {
		return v.leave(nodes, message), true
	}
	known := v.isTrue(v1beta2.OnUnhealthyNodes)
	message = fmt.Sprintf("%s; they stay because migrationLimit, which is %d, is reached", message, v.Policy.MigrationLimit)
	v.set(v1beta2.OnUnhealthyNodes, metav1.ConditionTrue, v1beta2.ReasonMigrationLimitReached, message)
	return v.stay().announcing(unhealthyEvent(v1beta2.ReasonAutopilotNoExecute, message)), !known
}

func (v *view) migrate(message string) Decision {
	v.status.Migrations++
	if v.NodesAssigned {
		message += "; Kueue is asked for other nodes"
	}
	return v.reset(v1beta2.ReasonAutopilotNoExecute, message)
}

// leave migrates away from these nodes.
func (v *view) leave(nodes map[string][]nodehealth.Cause, message string) Decision {
	v.avoid(nodes)
	d := v.migrate(message)
	d.Left = sources(nodes)
	return d
}

// notReadyReason is the reason of PodsReady at the beginning of an attempt. It tells whether
// the attempt began with a migration, until pods are ready for the first time.
func (v *view) notReadyReason() string {
	if v.isTrue(v1beta2.Unhealthy) && v.hasReason(v1beta2.Unhealthy, v1beta2.ReasonAutopilotNoExecute) {
		return v1beta2.ReasonAutopilotNoExecute
	}
	return string(v1beta2.AppWrapperResuming)
}

// lateAfterMigration: the workload migrated and its pods have not been ready since. That is
// no failure of its own, so it migrates again while the limit allows.
func (v *view) lateAfterMigration() bool {
	return v.hasReason(v1beta2.PodsReady, v1beta2.ReasonAutopilotNoExecute) && v.status.Migrations < v.Policy.MigrationLimit
}

// doNotFitTheirNodes: the scheduler refuses the nodes that Kueue has assigned, as when Kueue does not know of their
// labels. That is no failure of the workload.
func (v *view) doNotFitTheirNodes(c podCounts) bool {
	return v.NodesAssigned && c.unplaced > 0 && v.status.Migrations < v.Policy.MigrationLimit && !v.migrationsAreLost()
}

// nodesToMigrateFrom are the nodes from which pods of unfinished components must migrate, with
// what is wrong with them.
func (v *view) nodesToMigrateFrom() map[string][]nodehealth.Cause {
	nodes := map[string][]nodehealth.Cause{}
	for _, p := range v.Pods {
		if v.mustMigrate(p) && !p.MigrateAt.After(v.now) {
			nodes[p.MigrateFrom] = append(nodes[p.MigrateFrom], p.MigrateBecause...)
		}
	}
	return nodes
}

// leaveOrReset leaves the nodes that are to blame for a failure, while the limit allows. If none is,
// it resets or fails.
func (v *view) leaveOrReset(nodes map[string][]nodehealth.Cause, reason, message string) Decision {
	message = v.tellingWhatFailed(message)
	if len(nodes) == 0 || v.endedTerminally() || v.status.Migrations >= v.Policy.MigrationLimit || v.migrationsAreLost() {
		return v.resetOrFail(reason, message)
	}
	message = "pods failed or were lost because of their nodes: " + described(nodes) + "; " + message
	return v.leave(nodes, message).because(CauseNodeUnhealthy)
}

// nodesToBlame are the unhealthy nodes on which pods of unfinished components failed or are being
// lost, with what is wrong with them, and the nodes from which such pods were evicted. One is enough:
// without that pod, the others of a gang fail.
func (v *view) nodesToBlame() map[string][]nodehealth.Cause {
	nodes := map[string][]nodehealth.Cause{}
	for _, p := range v.Pods {
		lost := p.Phase == corev1.PodFailed || p.alive() && p.Terminating
		if p.MigrateFrom != "" && lost && !v.belongsToFinished(p) && !v.wasReplaced(p) {
			nodes[p.MigrateFrom] = append(nodes[p.MigrateFrom], p.MigrateBecause...)
		}
	}
	blamed := v.evictedFrom()
	maps.Copy(blamed, nodes) // what a node itself shows says more
	return blamed
}

// nodesThatStartNothing are those on which pods are late. A kubelet that has not even begun with a
// pod is to blame. Pods that it has begun with may be late by their own fault, as without their
// image: a node is only avoided then, and only if other pods of the component have started, all
// elsewhere.
func (v *view) nodesThatStartNothing() (silent, stragglers map[string][]nodehealth.Cause) {
	silent, stragglers = map[string][]nodehealth.Cause{}, map[string][]nodehealth.Cause{}
	for _, p := range v.Pods {
		switch {
		case p.Phase != corev1.PodPending || p.Node == "" || p.Terminating || v.belongsToFinished(p):
		case p.Started.IsZero():
			silent[p.Node] = []nodehealth.Cause{{Source: nodehealth.PodNotStarted, Sign: "kubelet-silent"}}
		case v.startedElsewhereOnly(p):
			stragglers[p.Node] = []nodehealth.Cause{{Source: nodehealth.PodNotStarted, Sign: nodehealth.OthersStarted}}
		}
	}
	return silent, stragglers
}

// startedElsewhereOnly: other pods of its component have started, and none on its node.
func (v *view) startedElsewhereOnly(p Pod) bool {
	elsewhere := false
	for _, other := range v.Pods {
		if other.Component == p.Component && (other.Phase == corev1.PodRunning || other.Phase == corev1.PodSucceeded) {
			if other.Node == p.Node {
				return false
			}
			elsewhere = elsewhere || other.Node != ""
		}
	}
	return elsewhere
}

// wasReplaced: the pod was rejected, and as many pods as expected came beside it. A Job keeps such pods,
// and they are not to blame for what happens to the others.
func (v *view) wasReplaced(p Pod) bool {
	return p.wasRejected() && v.podSets().lacking(podCounts.taken) == 0
}

// wasRejected: its node did not let it run, and nothing else is wrong with that node.
func (p Pod) wasRejected() bool {
	others := slices.ContainsFunc(p.MigrateBecause, func(c nodehealth.Cause) bool { return c.Source != nodehealth.PodRejected })
	return len(p.MigrateBecause) > 0 && !others
}

// migrationsAreLost: the attempt began with a migration, and none is counted, because the CRD of
// another controller drops the number. Then the limit would never be reached.
func (v *view) migrationsAreLost() bool {
	return v.status.Migrations == 0 && v.hasReason(v1beta2.PodsReady, v1beta2.ReasonAutopilotNoExecute)
}

func (v *view) belongsToFinished(p Pod) bool {
	return p.Component != UnknownComponent && v.finished(p.Component)
}

// mustMigrate: sooner or later.
func (v *view) mustMigrate(p Pod) bool {
	return p.MigrateFrom != "" && p.alive() && !p.Terminating && !v.belongsToFinished(p)
}

// untilMigration adds to a decision to stay that pods must migrate when the grace of their nodes
// ends.
func (v *view) untilMigration(d Decision) Decision {
	for _, p := range v.Pods {
		if v.mustMigrate(p) && p.MigrateAt.After(v.now) {
			d = v.untilAtMost(d, p.MigrateAt)
		}
	}
	return d
}

// described names each node, and each cause once, in order.
func described(nodes map[string][]nodehealth.Cause) string {
	var all []string
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		causes := make([]string, len(nodes[node]))
		for i, cause := range nodes[node] {
			causes[i] = cause.String()
		}
		slices.Sort(causes)
		if causes = slices.Compact(causes); len(causes) > 0 {
			node += " (" + strings.Join(causes, ", ") + ")"
		}
		all = append(all, node)
	}
	return strings.Join(all, ", ")
}

func sources(nodes map[string][]nodehealth.Cause) []nodehealth.Source {
	found := map[nodehealth.Source]bool{}
	for _, causes := range nodes {
		for _, cause := range causes {
			found[cause.Source] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// retryIsPointless: pods failed, were not replaced, and would fail on any node.
func (v *view) retryIsPointless() bool {
	s := v.podSets()
	return s.failed() && !s.complete() && v.endedTerminally()
}
