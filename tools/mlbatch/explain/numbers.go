// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/queuefit"
)

func resourceName(name string) corev1.ResourceName { return corev1.ResourceName(name) }

// numbers are the shortages that Kueue names: insufficient unused quota for cpu in flavor a, 2
// more needed.
func (o Objects) numbers(message string) (all []Number) {
	for _, part := range strings.Split(message, "insufficient unused quota for ")[1:] {
		name, rest, ok := strings.Cut(part, " in flavor ")
		flavor, rest, also := strings.Cut(rest, ", ")
		more, _, too := strings.Cut(rest, " more needed")
		if ok && also && too && !strings.ContainsAny(name+flavor+more, " ,;") {
			all = append(all, o.completed(Number{Resource: name, Flavor: flavor, Missing: more}))
		}
	}
	return all
}

// excesses are the requests that Kueue says can never be met: insufficient quota for cpu in flavor a, previously
// considered podsets requests (1) + current podset request (4) > maximum capacity (4).
func excesses(message string) (all []Number) {
	for _, part := range strings.Split(message, "insufficient quota for ")[1:] {
		name, rest, ok := strings.Cut(part, " in flavor ")
		flavor, rest, also := strings.Cut(rest, ", previously considered podsets requests (")
		before, rest, too := strings.Cut(rest, ") + current podset request (")
		now, rest, more := strings.Cut(rest, ") > maximum capacity (")
		most, _, end := strings.Cut(rest, ")")
		a, err := resource.ParseQuantity(before)
		b, wrong := resource.ParseQuantity(now)
		if ok && also && too && more && end && err == nil && wrong == nil && !strings.ContainsAny(name+flavor+most, " ,;") {
			a.Add(b)
			all = append(all, Number{Resource: name, Flavor: flavor, Requested: a.String(), Most: most})
		}
	}
	return all
}

// completed adds the numbers of the queue, if it was read.
func (o Objects) completed(n Number) Number {
	queue := o.queue()
	if queue == nil {
		return n
	}
	cell := queuefit.Cell{Flavor: kueue.ResourceFlavorReference(n.Flavor), Resource: resourceName(n.Resource)}
	if own, known := nominal(*queue, cell); known {
		n.Own = own.NominalQuota.String()
	}
	if use, known := usage(*queue, cell); known {
		n.Used = use.Total.String()
	}
	return n
}

// FirstInQueue is said of the work that Kueue admits next.
const FirstInQueue = "it is the first in its ClusterQueue"

// who is ahead, and who has borrowed what is missing.
func (o Objects) who(numbers []Number) (all []string) {
	if p := o.Position; p != nil && p.ClusterQueue == 0 {
		all = append(all, FirstInQueue)
	} else if p != nil {
		all = append(all, fmt.Sprintf("%d are ahead of it in its ClusterQueue, %d of them in its own queue", p.ClusterQueue, p.LocalQueue))
	}
	seen := map[string]bool{}
	for _, n := range numbers {
		for _, text := range o.borrowers(queuefit.Cell{Flavor: kueue.ResourceFlavorReference(n.Flavor), Resource: resourceName(n.Resource)}) {
			if !seen[text] {
				seen[text] = true
				all = append(all, text)
			}
		}
	}
	return all
}

// share reports whether two queues lend to and borrow from each other: their cohorts have the same root.
func (o Objects) share(one, other kueue.ClusterQueue) bool {
	return one.Spec.CohortName != "" && other.Spec.CohortName != "" && o.root(one.Spec.CohortName) == o.root(other.Spec.CohortName)
}

// root is the cohort above a cohort that has none above itself. Kueue uses no cohorts that are above each other.
func (o Objects) root(name kueue.CohortReference) kueue.CohortReference {
	for range o.Cohorts {
		i := slices.IndexFunc(o.Cohorts, func(c kueue.Cohort) bool { return c.Name == string(name) && c.Spec.ParentName != "" })
		if i < 0 {
			break
		}
		name = o.Cohorts[i].Spec.ParentName
	}
	return name
}

// borrowers are the other queues of the cohort's tree that use more than their own of a cell.
func (o Objects) borrowers(cell queuefit.Cell) (all []string) {
	own := o.queue()
	if own == nil || own.Spec.CohortName == "" {
		return nil
	}
	for _, q := range o.ClusterQueues {
		use, known := usage(q, cell)
		if !known || q.Name == own.Name || !o.share(q, *own) || use.Borrowed.Sign() <= 0 {
			continue
		}
		all = append(all, fmt.Sprintf("ClusterQueue %s has borrowed %s of %s in flavor %s", q.Name, use.Borrowed.String(), cell.Resource, cell.Flavor))
	}
	return all
}

func nominal(queue kueue.ClusterQueue, cell queuefit.Cell) (kueue.ResourceQuota, bool) {
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, quota := range flavor.Resources {
				if flavor.Name == cell.Flavor && quota.Name == cell.Resource {
					return quota, true
				}
			}
		}
	}
	return kueue.ResourceQuota{}, false
}

// usage is what Kueue has reserved, which other work cannot have.
func usage(queue kueue.ClusterQueue, cell queuefit.Cell) (kueue.ResourceUsage, bool) {
	for _, flavor := range queue.Status.FlavorsReservation {
		for _, use := range flavor.Resources {
			if flavor.Name == cell.Flavor && use.Name == cell.Resource {
				return use, true
			}
		}
	}
	return kueue.ResourceUsage{}, false
}
