// SPDX-License-Identifier: Apache-2.0

package quotawatch

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// scene describes what was stored about one holder of quota at this moment, to debug a violation.
// None of it can be read later.
func scene(m audit.Moment, holder audit.Holder) string {
	var b strings.Builder
	for _, p := range m.Pods {
		if m.HolderOf(p) == holder {
			fmt.Fprintf(&b, "   pod %s\n", podLine(p))
		}
	}
	for _, w := range m.Workloads {
		if audit.WorkloadHolder(w) == holder {
			fmt.Fprintf(&b, "   Workload %s\n", workloadLine(w))
		}
	}
	return b.String()
}

func podLine(p corev1.Pod) string {
	owner := "nothing"
	if c := metav1.GetControllerOf(&p); c != nil {
		owner = fmt.Sprintf("%s %s %s", c.Kind, c.Name, c.UID)
	}
	return fmt.Sprintf("%s: version %s, %s, on %q, pod set %q, of %s, created %s, %s",
		p.Name, p.ResourceVersion, p.Status.Phase, p.Spec.NodeName, p.Labels[quota.PodSetLabel], owner, clock(&p.CreationTimestamp), deleted(p.DeletionTimestamp))
}

func workloadLine(w kueue.Workload) string {
	admission, err := json.Marshal(w.Status.Admission)
	if err != nil {
		admission = []byte(err.Error())
	}
	var conditions []string
	for _, c := range w.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, clock(&c.LastTransitionTime)))
	}
	return fmt.Sprintf("%s: version %s, %s, %s, admission %s", w.Name, w.ResourceVersion, deleted(w.DeletionTimestamp), strings.Join(conditions, ", "), admission)
}

func deleted(at *metav1.Time) string {
	if at == nil {
		return "not deleted"
	}
	return "deleted " + clock(at)
}

func clock(at *metav1.Time) string { return at.UTC().Format(time.TimeOnly) }
