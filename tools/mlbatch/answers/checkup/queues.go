// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// slackQueueUnkept: without a cohort, Kueue allows no lending limit. What the controller's configuration does not
// name, it may not make.
func (o Objects) slackQueueUnkept() (found []sight) {
	for _, name := range o.Signs.SlackQueues() {
		i := slices.IndexFunc(o.ClusterQueues, func(q kueue.ClusterQueue) bool { return q.Name == name })
		switch {
		case i < 0:
			found = append(found, of("ClusterQueue "+name, "ClusterQueues", fmt.Sprintf("0 of %d have this name", len(o.ClusterQueues))))
		case o.ClusterQueues[i].Spec.CohortName == "":
			found = append(found, of("ClusterQueue "+name, "cohortName", `""`))
		}
	}
	for _, name := range o.DeclaredSlack {
		if named := o.Signs.SlackQueues(); !slices.Contains(named, name) {
			found = append(found, of("ClusterQueue "+name, "slackQueues of the teams", "has it", "slackQueueNames of the controller", fmt.Sprintf("%q", named)))
		}
	}
	return found
}

func (o Objects) clusterQueueInactive() (found []sight) {
	for _, q := range o.ClusterQueues {
		if c := quota.Inactive(q.Status.Conditions); c != nil && !quota.Stopped(q.Spec.StopPolicy) {
			found = append(found, of("ClusterQueue "+q.Name, "condition Active", string(c.Status), "reason", c.Reason, "message", c.Message, "pending", fmt.Sprint(q.Status.PendingWorkloads)))
		}
	}
	return found
}

func (o Objects) queueStopped() (found []sight) {
	for _, q := range o.ClusterQueues {
		if quota.Stopped(q.Spec.StopPolicy) && q.Status.PendingWorkloads > 0 {
			found = append(found, of("ClusterQueue "+q.Name, "stopPolicy", string(*q.Spec.StopPolicy), "pending", fmt.Sprint(q.Status.PendingWorkloads)))
		}
	}
	for _, q := range o.LocalQueues {
		if quota.Stopped(q.Spec.StopPolicy) && q.Status.PendingWorkloads > 0 {
			found = append(found, of("LocalQueue "+q.Namespace+"/"+q.Name, "stopPolicy", string(*q.Spec.StopPolicy), "pending", fmt.Sprint(q.Status.PendingWorkloads)))
		}
	}
	return found
}

func (o Objects) clusterQueueUnused() (found []sight) {
	for _, q := range o.ClusterQueues {
		used := slices.ContainsFunc(o.LocalQueues, func(l kueue.LocalQueue) bool { return string(l.Spec.ClusterQueue) == q.Name })
		if !used && !o.cluster().IsSlack(q) {
			found = append(found, of("ClusterQueue "+q.Name, "LocalQueues", fmt.Sprintf("0 of %d", len(o.LocalQueues))))
		}
	}
	return found
}

// clusterQueue is that of a LocalQueue.
func (o Objects) clusterQueue(l kueue.LocalQueue) (kueue.ClusterQueue, bool) {
	i := slices.IndexFunc(o.ClusterQueues, func(q kueue.ClusterQueue) bool { return q.Name == string(l.Spec.ClusterQueue) })
	if i < 0 {
		return kueue.ClusterQueue{}, false
	}
	return o.ClusterQueues[i], true
}

func (o Objects) clusterQueueMissing() (found []sight) {
	for _, l := range o.LocalQueues {
		if _, there := o.clusterQueue(l); !there {
			found = append(found, of("LocalQueue "+l.Namespace+"/"+l.Name, "spec.clusterQueue", fmt.Sprintf("%q", l.Spec.ClusterQueue), "pending", fmt.Sprint(l.Status.PendingWorkloads)))
		}
	}
	return found
}

func (o Objects) localQueueInactive() (found []sight) {
	for _, l := range o.LocalQueues {
		q, there := o.clusterQueue(l)
		above := quota.Stopped(q.Spec.StopPolicy) || quota.Inactive(q.Status.Conditions) != nil
		if c := quota.Inactive(l.Status.Conditions); c != nil && there && !above && !quota.Stopped(l.Spec.StopPolicy) {
			found = append(found, of("LocalQueue "+l.Namespace+"/"+l.Name, "condition Active", string(c.Status), "reason", c.Reason, "message", c.Message))
		}
	}
	return found
}

func (o Objects) namespaceUnlabelled() (found []sight) {
	for _, n := range o.Namespaces {
		var queues []string
		for _, l := range o.LocalQueues {
			if l.Namespace == n.Name {
				queues = append(queues, l.Name)
			}
		}
		if value := n.Labels[quota.TeamLabel]; len(queues) > 0 && value != "true" && n.Status.Phase != corev1.NamespaceTerminating {
			found = append(found, of("Namespace "+n.Name, "label "+quota.TeamLabel, fmt.Sprintf("%q", value), "LocalQueues", some(queues)))
		}
	}
	return found
}

// tolerationsUnlisted: the chart of teams writes the list into namespaces that it creates.
func (o Objects) tolerationsUnlisted() (found []sight) {
	for _, n := range o.Namespaces {
		_, listed := n.Annotations[admissionrules.TolerationsAnnotation]
		if listed || n.Labels[quota.TeamLabel] != "true" || n.Status.Phase == corev1.NamespaceTerminating {
			continue
		}
		taints := fmt.Sprintf("%q", strings.Join(o.flavorTaints(n.Name), ","))
		found = append(found, of("Namespace "+n.Name, "annotation "+admissionrules.TolerationsAnnotation, "none", "its flavors", taints))
	}
	return found
}

// flavorTaints are those that the flavors of a namespace's queues have or tolerate.
func (o Objects) flavorTaints(namespace string) (taints []string) {
	for _, f := range o.Flavors {
		if !slices.ContainsFunc(o.LocalQueues, func(l kueue.LocalQueue) bool { return l.Namespace == namespace && o.offers(l, f.Name) }) {
			continue
		}
		for _, t := range f.Spec.NodeTaints {
			taints = append(taints, admissionrules.Tolerable(t.Key, t.Value))
		}
		for _, t := range f.Spec.Tolerations {
			taints = append(taints, admissionrules.Tolerable(t.Key, t.Value))
		}
	}
	slices.Sort(taints)
	return slices.DeleteFunc(slices.Compact(taints), func(t string) bool { return t == "" })
}

// offers tells whether the ClusterQueue of a LocalQueue has quota in a flavor.
func (o Objects) offers(l kueue.LocalQueue, flavor string) bool {
	q, _ := o.clusterQueue(l)
	return slices.ContainsFunc(q.Spec.ResourceGroups, func(g kueue.ResourceGroup) bool {
		return slices.ContainsFunc(g.Flavors, func(f kueue.FlavorQuotas) bool { return string(f.Name) == flavor })
	})
}

// lines makes sights of sentences.
func lines(subject string, sentences []string) (found []sight) {
	for _, sentence := range sentences {
		if strings.TrimSpace(sentence) != "" {
			found = append(found, of(subject, "message", sentence))
		}
	}
	return found
}
