// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/nodehealth"
)

// killed are exit codes of programs that were ended from outside, or that used too much memory.
var killed = []int32{128 + 9, 128 + 15}

// noteFailedNode is for a reset that counts as a retry. It remembers where the program failed, in
// the same write, unless that was on several nodes, or an earlier failure was elsewhere: then the
// program is to blame.
func (v *view) noteFailedNode() {
	before := v.status.FailedNode
	v.status.FailedNode = nil
	failed := v.failedOnOneNode()
	if failed == nil || v.Policy.Avoid.Nodes == 0 {
		return
	}
	if before == nil && v.status.Retries == 0 || before != nil && before.Name == failed.Name {
		v.status.FailedNode = failed
	}
}

// failedOnOneNode is nil if programs ended with an error on several nodes, or on none, or nobody
// knows where. A pod that a node rejected has run no program.
func (v *view) failedOnOneNode() *v1beta2.FailedNode {
	var node string
	var codes []int32
	began := v.now
	for _, p := range v.Pods {
		if p.Phase != corev1.PodFailed || p.Terminating || p.wasRejected() || v.belongsToFinished(p) {
			continue
		}
		if !p.endedByItself() || node != "" && p.Node != node {
			return nil
		}
		node, codes, began = p.Node, append(codes, p.ExitCodes...), earlier(began, p.Started)
	}
	if node == "" {
		return nil
	}
	cause := nodehealth.Cause{Source: nodehealth.PodFailed, Sign: fmt.Sprintf("exit-%d", slices.Min(codes))}
	return &v1beta2.FailedNode{
		Name: node, Cause: cause.String(), LastedSeconds: int64(v.now.Sub(began) / time.Second), Until: metav1.Time{Time: v.now.Add(v.Policy.Avoid.Period)},
	}
}

// endedByItself: its program ended with an error, and it is known where.
func (p Pod) endedByItself() bool {
	wasKilled := slices.ContainsFunc(p.ExitCodes, func(code int32) bool { return slices.Contains(killed, code) })
	return p.Node != "" && !p.Started.IsZero() && len(p.ExitCodes) > 0 && !wasKilled
}

// doubtFailedNode is for work that does well. It forgets the node if a pod does so there, or if
// nobody knows where pods do. What was known when pods were ready needs no pod any more.
func (v *view) doubtFailedNode() {
	if v.status.FailedNode == nil {
		return
	}
	elsewhere := v.isTrue(v1beta2.PodsReady)
	for _, p := range v.Pods {
		if p.Phase != corev1.PodRunning && p.Phase != corev1.PodSucceeded {
			continue
		}
		if elsewhere = p.Node != "" && p.Node != v.status.FailedNode.Name; !elsewhere {
			break
		}
	}
	if !elsewhere {
		v.status.FailedNode = nil
	}
}
