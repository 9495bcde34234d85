// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// Comparison has the hours of one resource from two sources: the books of AppWrappers, and Kueue's Workloads. Both
// are of the AppWrappers whose Workload knows their whole life.
type Comparison struct {
	Resource    string `json:"resource"`
	AppWrappers int    `json:"appWrappers"`
	Compared    int    `json:"compared"`
	Books       Hours  `json:"booksHours"`
	Kueue       Hours  `json:"kueueHours"`
	// Difference is how much more the books have than Kueue, in percent; absent if nothing is compared.
	Difference *float64 `json:"differencePercent,omitempty"`
}

func (o Objects) compare(all []account, now time.Time) (found []Comparison) {
	if o.Workloads == nil {
		return nil
	}
	workloads := o.byOwner()
	sums := map[string]*Comparison{}
	for _, a := range all {
		w := workloads[a.aw.UID]
		for name, n := range a.units {
			if sums[name] == nil {
				sums[name] = &Comparison{Resource: name}
			}
			sums[name].AppWrappers++
			if w == nil || !knowsAll(w, a.aw) {
				continue
			}
			sums[name].Compared++
			sums[name].Books += hours(seconds(ledger.Sum(a.used)), n)
			sums[name].Kueue += hours(reserved(w, now), unitsOfWorkload(w)[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		c := *sums[name]
		if c.Compared > 0 {
			c.Difference = new(percent(c.Books-c.Kueue, c.Kueue))
		}
		found = append(found, c)
	}
	return found
}

// byOwner are the Workloads of AppWrappers that have only one.
func (o Objects) byOwner() map[types.UID]*kueue.Workload {
	found := map[types.UID]*kueue.Workload{}
	for i := range o.Workloads {
		owner, _ := quota.Owner(&o.Workloads[i])
		if _, second := found[owner.UID]; second {
			found[owner.UID] = nil
			continue
		}
		found[owner.UID] = &o.Workloads[i]
	}
	return found
}

// bare are the Workloads that have had quota, and that no AppWrapper owns.
func (o Objects) bare() (n int) {
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if owner, _ := quota.Owner(w); owner.Kind != v1beta2.AppWrapperKind && (w.Status.AccumulatedPastExecutionTimeSeconds != nil || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved)) {
			n++
		}
	}
	return n
}

// madeWithin is how much younger than its AppWrapper a Workload may be. What is younger may have taken the place
// of another one.
const madeWithin = time.Minute

// knowsAll: the Workload has counted all the time for which its AppWrapper had quota. Kueue forgets what it has
// counted when it removes a Workload, and when the time for which work may run is over.
func knowsAll(w *kueue.Workload, aw *v1beta2.AppWrapper) bool {
	return w.Spec.MaximumExecutionTimeSeconds == nil && w.CreationTimestamp.Sub(aw.CreationTimestamp.Time) <= madeWithin
}

// reserved are the seconds for which Kueue has reserved quota: those that it has added up, and those since it
// reserves the present quota. A finished Workload keeps the condition, and holds no quota.
func reserved(w *kueue.Workload, now time.Time) (sum int64) {
	if past := w.Status.AccumulatedPastExecutionTimeSeconds; past != nil {
		sum = int64(*past)
	}
	since := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if since == nil || since.Status != metav1.ConditionTrue {
		return sum
	}
	if finished := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished); finished != nil && finished.Status == metav1.ConditionTrue {
		now = finished.LastTransitionTime.Time
	}
	return sum + max(0, now.Unix()-since.LastTransitionTime.Unix())
}

// unitsOfWorkload are what Kueue has counted. Once it holds no quota, only the pods are known that it has counted.
func unitsOfWorkload(w *kueue.Workload) units {
	all, held := units{}, units{}
	for _, podSet := range w.Spec.PodSets {
		all.add(podSet.Template.Spec, int64(podSet.Count))
	}
	if w.Status.Admission != nil {
		for _, podSet := range w.Status.Admission.PodSetAssignments {
			for name, amount := range podSet.ResourceUsage {
				held[string(name)] += thousandths(name, amount)
			}
		}
	}
	maps.Copy(all, held)
	return all
}

// percent is all if there is nothing to compare with.
func percent(part, whole Hours) float64 {
	switch {
	case part == 0:
		return 0
	case whole == 0:
		return 100
	}
	return part.float() / whole.float() * 100
}
