// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// podsOnUnhealthyNodes: pods use what is unhealthy on their nodes. The workload is reset and comes
// back elsewhere; it has done nothing wrong, so no retry is counted. Migrations have a limit
// of their own, because pods may be sent to such nodes again. When it is reached the work
// goes on for as long as it can, which is worth more than a failure, and that is said once.
func podsOnUnhealthyNodes(v *view) (Decision, bool) {
	nodes := v.nodesToMigrateFrom()
	if len(nodes) == 0 {
		v.clear(v1beta2.OnUnhealthyNodes, v1beta2.ReasonNodesHealthy, "")
		return Decision{}, false
	}
	if v.retryIsPointless() {
		return Decision{}, false
	}
	message := "pods use unhealthy resources of nodes that have to be left: " + strings.Join(nodes, ", ")
	if v.status.Migrations < v.Policy.MigrationLimit {
		return v.migrate(message), true
	}
	known := v.isTrue(v1beta2.OnUnhealthyNodes)
	message = fmt.Sprintf("%s; they stay there because migrationLimit, which is %d, is reached", message, v.Policy.MigrationLimit)
	v.set(v1beta2.OnUnhealthyNodes, metav1.ConditionTrue, v1beta2.ReasonMigrationLimitReached, message)
	return v.stay().announcing(unhealthyEvent(v1beta2.ReasonAutopilotNoExecute, message)), !known
}

func (v *view) migrate(message string) Decision {
	v.status.Migrations++
	return v.reset(v1beta2.ReasonAutopilotNoExecute, message)
}

// notReadyReason is the reason why no pod of an attempt that begins is ready: nodes had to
// be left, or all begins as usual. It stays until pods are ready for the first time.
func (v *view) notReadyReason() string {
	if v.isTrue(v1beta2.Unhealthy) && v.hasReason(v1beta2.Unhealthy, v1beta2.ReasonAutopilotNoExecute) {
		return v1beta2.ReasonAutopilotNoExecute
	}
	return string(v1beta2.AppWrapperResuming)
}

// lateAfterMigration: work that was healthy had to leave its nodes, and has found no place since.
// That is no failure of its own, so it goes on as a migration while one is left.
func (v *view) lateAfterMigration() bool {
	return v.hasReason(v1beta2.PodsReady, v1beta2.ReasonAutopilotNoExecute) && v.status.Migrations < v.Policy.MigrationLimit
}

// nodesToMigrateFrom are the nodes that pods of unfinished components have to leave, each once.
func (v *view) nodesToMigrateFrom() []string {
	var nodes []string
	for _, p := range v.Pods {
		finished := p.Component != UnknownComponent && v.finished(p.Component)
		if p.MigrateFrom != "" && p.alive() && !p.Terminating && !finished {
			nodes = append(nodes, p.MigrateFrom)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// retryIsPointless: pods failed in a way that another attempt cannot mend, on whatever node.
func (v *view) retryIsPointless() bool {
	c := v.countPods()
	return c.failed > 0 && !c.complete() && v.endedTerminally()
}
