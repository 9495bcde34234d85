// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
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
	cell := quota.Cell{Flavor: kueue.ResourceFlavorReference(n.Flavor), Resource: resourceName(n.Resource)}
	if own, known := quota.Own(queue.Spec.ResourceGroups, cell); known {
		n.Own = own.NominalQuota.String()
	}
	if use, known := quota.Reserved(*queue, cell); known {
		n.Used = use.Total.String()
	}
	return n
}

// who is ahead, and who has borrowed what is missing.
func (o Objects) who(numbers []Number) (all []string) {
	if o.Position != nil {
		all = append(all, o.Position.words(o.queue()))
	}
	seen := map[string]bool{}
	for _, n := range numbers {
		for _, text := range o.borrowers(quota.Cell{Flavor: kueue.ResourceFlavorReference(n.Flavor), Resource: resourceName(n.Resource)}) {
			if !seen[text] {
				seen[text] = true
				all = append(all, text)
			}
		}
	}
	return all
}

func (o Objects) tree() quota.Tree { return quota.Tree{Queues: o.ClusterQueues, Cohorts: o.Cohorts} }

// share reports whether two queues lend to and borrow from each other: their cohorts have the same root.
func (o Objects) share(one, other kueue.ClusterQueue) bool {
	return one.Spec.CohortName != "" && other.Spec.CohortName != "" && o.tree().Root(one.Spec.CohortName) == o.tree().Root(other.Spec.CohortName)
}

// borrowers are the other queues of the cohort's tree that use more than their own of a cell.
func (o Objects) borrowers(cell quota.Cell) (all []string) {
	own := o.queue()
	if own == nil || own.Spec.CohortName == "" {
		return nil
	}
	for _, q := range o.ClusterQueues {
		use, known := quota.Reserved(q, cell)
		if !known || q.Name == own.Name || !o.share(q, *own) || use.Borrowed.Sign() <= 0 {
			continue
		}
		all = append(all, fmt.Sprintf("ClusterQueue %s has borrowed %s of %s in flavor %s", q.Name, use.Borrowed.String(), cell.Resource, cell.Flavor))
	}
	return all
}
