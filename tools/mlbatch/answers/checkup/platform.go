// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

func name(d appsv1.Deployment) string { return "Deployment " + d.Namespace + "/" + d.Name }

func wanted(d appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// running are the Deployments of a part that are not scaled to zero.
func (o Objects) running(part string) (found []appsv1.Deployment) {
	for _, d := range o.Deployments {
		if p, known := parts.Of(d.Name); known && p.Name == part && wanted(d) > 0 {
			found = append(found, d)
		}
	}
	return found
}

func (o Objects) refused() []sight { return lines("Cluster", o.Install.Problems) }

func (o Objects) unusual() []sight { return lines("Cluster", o.Install.Unusual) }

// installed reports whether a part runs without which nothing starts.
func (o Objects) installed() bool {
	return slices.ContainsFunc(parts.All, func(p parts.Part) bool { return p.Essential && len(o.running(p.Name)) > 0 })
}

func (o Objects) platformMissing() []sight {
	if o.installed() {
		return nil
	}
	return []sight{of("Cluster", "Deployments of Kueue or the AppWrapper controller", fmt.Sprintf("0 of %d", len(o.Deployments)))}
}

func (o Objects) componentMissing() (found []sight) {
	for _, part := range parts.All {
		if part.Essential && o.installed() && len(o.running(part.Name)) == 0 {
			found = append(found, of("Component "+part.Name, "Deployments with replicas", fmt.Sprintf("0 of %d", len(o.Deployments))))
		}
	}
	return found
}

func (o Objects) componentNotReady() (found []sight) {
	for _, d := range o.Deployments {
		if _, known := parts.Of(d.Name); known && d.Status.AvailableReplicas < wanted(d) {
			found = append(found, of(name(d), "available", fmt.Sprintf("%d of %d pods", d.Status.AvailableReplicas, wanted(d))))
		}
	}
	return found
}

func (o Objects) componentVersion() (found []sight) {
	for _, d := range o.Deployments {
		part, known := parts.Of(d.Name)
		if containers := d.Spec.Template.Spec.Containers; known && len(containers) > 0 && wanted(d) > 0 {
			tag, tags := parts.Tag(containers[0].Image), o.tags(part)
			if tag != "" && len(tags) > 0 && !slices.Contains(tags, tag) {
				found = append(found, of(name(d), "has", tag, "release has", strings.Join(tags, " or ")))
			}
		}
	}
	return found
}

func (o Objects) definitionVersion() (found []sight) {
	for _, known := range parts.Kinds() {
		for _, d := range o.Definitions {
			if d.Name == known.Definition() && !slices.Contains(d.Served, known.Version) {
				found = append(found, of("CustomResourceDefinition "+d.Name, "served", cmp.Or(strings.Join(d.Served, ", "), "no version"), "used", known.Version))
			}
		}
	}
	return found
}

// operatorMissing names one kind of each part. An essential part that is missing is found by componentMissing.
func (o Objects) operatorMissing() (found []sight) {
	for _, part := range parts.All {
		if part.Essential || !o.installed() || len(o.running(part.Name)) > 0 {
			continue
		}
		if defined := slices.IndexFunc(part.Kinds, o.defines); defined >= 0 {
			found = append(found, of("CustomResourceDefinition "+part.Kinds[defined].Definition(), "operator", part.Name, "its Deployments", "0"))
		}
	}
	return found
}

// defines reports whether the cluster has the definition of a kind.
func (o Objects) defines(kind parts.Kind) bool {
	return slices.ContainsFunc(o.Definitions, func(d Definition) bool { return d.Name == kind.Definition() })
}

// twoOperators counts namespaces: some parts have two Deployments.
func (o Objects) twoOperators() (found []sight) {
	for _, part := range parts.All {
		var namespaces, names []string
		for _, d := range o.running(part.Name) {
			if !slices.Contains(namespaces, d.Namespace) {
				namespaces, names = append(namespaces, d.Namespace), append(names, d.Namespace+"/"+d.Name)
			}
		}
		if len(namespaces) > 1 {
			found = append(found, of("Component "+part.Name, "Deployments", some(names)))
		}
	}
	return found
}

func (o Objects) codeFlareOperator() (found []sight) {
	for _, d := range o.Deployments {
		if ours := o.running("appwrapper"); d.Name == "codeflare-operator-manager" && wanted(d) > 0 && len(ours) > 0 {
			found = append(found, of(name(d), "ours", ours[0].Namespace+"/"+ours[0].Name))
		}
	}
	return found
}

func (o Objects) twoSchedulers() (found []sight) {
	for _, d := range o.Deployments {
		ours := o.running("coscheduler")
		if slices.Contains(parts.OtherGangSchedulers, d.Name) && wanted(d) > 0 && len(ours) > 0 {
			found = append(found, of(name(d), "ours", ours[0].Namespace+"/"+ours[0].Name))
		}
	}
	return found
}

func (o Objects) workWithoutQueueRuns() []sight {
	if o.Kueue == nil || o.Kueue.ManagesAll {
		return nil
	}
	return []sight{of("Deployment "+o.Kueue.Deployment, "manageJobsWithoutQueueName", "false")}
}

func (o Objects) integrationMissing() (found []sight) {
	if o.Kueue == nil {
		return nil
	}
	for _, part := range parts.All {
		running := o.running(part.Name)
		for _, kind := range part.Kinds {
			if len(running) > 0 && kind.Framework != "" && !o.queues(kind) {
				found = append(found, of("Deployment "+o.Kueue.Deployment, "missing", kind.Framework, "its operator", running[0].Namespace+"/"+running[0].Name))
			}
		}
	}
	return found
}

// queues reports whether Kueue's configuration lists a kind.
func (o Objects) queues(kind parts.Kind) bool {
	return slices.Contains(o.Kueue.Frameworks, kind.Framework)
}

// twoRecoveries: Kueue waits for pods if it is configured so, and from 0.19 on without being told.
func (o Objects) twoRecoveries() []sight {
	if o.Kueue == nil || o.Kueue.Gates["DisableWaitForPodsReady"] {
		return nil
	}
	v, err := version.ParseSemantic(o.Kueue.Version)
	byItself := err == nil && v.AtLeast(version.MajorMinor(0, 19))
	if !byItself && !o.Kueue.WaitsForPods {
		return nil
	}
	return []sight{of("Deployment "+o.Kueue.Deployment, "version", o.Kueue.Version, "waitForPodsReady", fmt.Sprint(o.Kueue.WaitsForPods), "DisableWaitForPodsReady", "false")}
}

func (o Objects) twoQuotaKeepers() []sight {
	slack := slices.IndexFunc(o.ClusterQueues, o.cluster().IsSlack)
	if o.Kueue == nil || !o.Kueue.Gates["DynamicQuotaOrchestration"] || slack < 0 {
		return nil
	}
	return []sight{of("Deployment "+o.Kueue.Deployment, "DynamicQuotaOrchestration", "true", "ClusterQueue", o.ClusterQueues[slack].Name)}
}

// tags are those of a part in this release: the newest, and those for other versions of Kubernetes.
func (o Objects) tags(p parts.Part) []string {
	operator := p.Operator(o.Release)
	all := append([]string{parts.Tag(operator.Image)}, slices.Sorted(maps.Values(operator.OtherKubernetes))...)
	return slices.Compact(slices.DeleteFunc(all, func(tag string) bool { return tag == "" }))
}
