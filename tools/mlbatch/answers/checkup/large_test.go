// SPDX-License-Identifier: Apache-2.0

package checkup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
)

// A cluster with 200 nodes, 500 AppWrappers and 2000 pods is judged at once.
func TestALargeClusterIsJudgedQuickly(t *testing.T) {
	o := read(t, scenes(t)["testdata/quota beyond what is usable.in.yaml"])
	stuck := read(t, scenes(t)["testdata/AppWrappers are stuck.in.yaml"])
	node, pod, aw, w := o.Nodes[0], o.Pods[0], stuck.AppWrappers[2], stuck.Workloads[0]
	for i := range 2000 {
		node.Name, pod.Name = fmt.Sprint("node", i), fmt.Sprint("pod", i)
		pod.Spec.NodeName = fmt.Sprint("node", i%200)
		o.Pods = append(o.Pods, pod)
		if i < 200 {
			o.Nodes = append(o.Nodes, node)
		}
		if i < 500 {
			aw.Name = fmt.Sprint("aw", i)
			owner := w.OwnerReferences[0]
			owner.Name = aw.Name
			w.OwnerReferences = append(w.OwnerReferences[:0:0], owner)
			o.AppWrappers, o.Workloads = append(o.AppWrappers, aw), append(o.Workloads, w)
		}
	}
	begin := time.Now()
	r := checkup.Find(o)
	took := time.Since(begin)
	t.Logf("%d findings in %s", len(r.Findings), took)
	if len(codes(r.Findings, "SuspendedWithQuota")) != 500 || took > patience.For(2*time.Second) {
		t.Errorf("%d findings in %s", len(r.Findings), took)
	}
}
