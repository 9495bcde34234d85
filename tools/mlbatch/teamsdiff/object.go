// SPDX-License-Identifier: Apache-2.0

// Package teamsdiff answers: does a cluster have what the file of the teams says? It reads lists, and changes
// nothing.
package teamsdiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

// Object is what is compared of an object, which the chart has made or would make.
type Object struct {
	Kind, Namespace, Name string
	// release is the Helm release that owns it: NAMESPACE/NAME, or empty.
	release string
	// ofTeams means that the chart has made it.
	ofTeams bool
	// some means that only the fields of the file count: a namespace that the chart does not create, or a slack queue.
	some bool
	// slack means that the quota belongs to no team. The AppWrapper controller writes what it lends at most.
	slack  bool
	fields map[string]string
	// also are fields that others may have, too: only those of the file are compared.
	also   map[string]string
	team   *teamsfile.Team
	cohort *teamsfile.Cohort
}

func (o Object) String() string {
	if o.Namespace != "" {
		return o.Kind + " " + o.Namespace + "/" + o.Name
	}
	return o.Kind + " " + o.Name
}

func object(kind string, meta metav1.ObjectMeta, fields map[string]string) Object {
	o := Object{Kind: kind, Namespace: meta.Namespace, Name: meta.Name, fields: fields}
	o.ofTeams = meta.Labels["app.kubernetes.io/name"] == "teams" && meta.Labels["app.kubernetes.io/part-of"] == "mlbatch"
	if name := meta.Annotations["meta.helm.sh/release-name"]; name != "" {
		o.release = meta.Annotations["meta.helm.sh/release-namespace"] + "/" + name
	}
	return o
}

const teamLabel = "mlbatch-team-namespace"

// ofNamespace compares the labels and annotations that the platform reads.
func ofNamespace(n corev1.Namespace) Object {
	o := object("Namespace", n.ObjectMeta, map[string]string{})
	o.also = map[string]string{}
	for of, all := range map[string]map[string]string{"label ": n.Labels, "annotation ": n.Annotations} {
		for key, value := range all {
			switch {
			case strings.HasPrefix(key, "mlbatch-") || strings.HasPrefix(key, "pod-security.kubernetes.io/"):
				o.fields[of+key] = value
			case !ofRelease.MatchString(key):
				o.also[of+key] = value
			}
		}
	}
	return o
}

// ofRelease matches labels and annotations that say where an object comes from, and for what.
var ofRelease = regexp.MustCompile(`^(app\.kubernetes\.io|(meta\.)?helm\.sh|argocd\.argoproj\.io)/`)

func ofClusterQueue(q kueue.ClusterQueue) Object {
	s := q.Spec
	fields := map[string]string{
		"spec.cohortName": string(s.CohortName), "spec.fairSharing.weight": weight(s.FairSharing), "spec.stopPolicy": stopPolicy(s.StopPolicy),
		"spec.namespaceSelector": text(s.NamespaceSelector), "order of flavors": flavors(s.ResourceGroups), "covered resources": resources(s.ResourceGroups),
		"spec.queueingStrategy": cmp.Or(string(s.QueueingStrategy), string(kueue.BestEffortFIFO)), "spec.flavorFungibility": fungibility(s.FlavorFungibility),
		"spec.admissionChecksStrategy": text(s.AdmissionChecksStrategy),
	}
	if p := s.Preemption; p != nil {
		fields["spec.preemption.withinClusterQueue"] = string(p.WithinClusterQueue)
		fields["spec.preemption.reclaimWithinCohort"] = string(p.ReclaimWithinCohort)
		if p.BorrowWithinCohort != nil {
			fields["spec.preemption.borrowWithinCohort"] = string(p.BorrowWithinCohort.Policy)
			fields["spec.preemption.maxPriorityThreshold"] = text(p.BorrowWithinCohort.MaxPriorityThreshold)
		}
	}
	o := object("ClusterQueue", q.ObjectMeta, fields)
	_, o.slack = q.Annotations[v1beta2.DeclaredLendingLimitsAnnotation]
	o.team = &teamsfile.Team{Name: strings.TrimSuffix(q.Name, "-cluster-queue"), Cohort: string(s.CohortName), Quota: quota(s.ResourceGroups)}
	return o
}

// fungibility has the defaults of the API server for what is not set.
func fungibility(f *kueue.FlavorFungibility) string {
	if f == nil {
		f = &kueue.FlavorFungibility{}
	}
	return text(kueue.FlavorFungibility{
		WhenCanBorrow: cmp.Or(f.WhenCanBorrow, kueue.MayStopSearch), WhenCanPreempt: cmp.Or(f.WhenCanPreempt, kueue.TryNextFlavor), Preference: f.Preference,
	})
}

func ofLocalQueue(q kueue.LocalQueue) Object {
	return object("LocalQueue", q.ObjectMeta, map[string]string{"spec.clusterQueue": string(q.Spec.ClusterQueue), "spec.stopPolicy": stopPolicy(q.Spec.StopPolicy)})
}

func ofCohort(c kueue.Cohort) Object {
	o := object("Cohort", c.ObjectMeta, map[string]string{
		"spec.parentName": string(c.Spec.ParentName), "spec.fairSharing.weight": weight(c.Spec.FairSharing), "covered resources": resources(c.Spec.ResourceGroups),
	})
	o.cohort = &teamsfile.Cohort{Name: c.Name, Parent: string(c.Spec.ParentName), Quota: quota(c.Spec.ResourceGroups)}
	return o
}

func ofFlavor(f kueue.ResourceFlavor) Object {
	return object("ResourceFlavor", f.ObjectMeta, map[string]string{
		"spec.nodeLabels": text(f.Spec.NodeLabels), "spec.nodeTaints": text(f.Spec.NodeTaints), "spec.tolerations": text(f.Spec.Tolerations),
		"spec.topologyName": text(f.Spec.TopologyName),
	})
}

// weight is 1 if there is none, as for Kueue.
func weight(f *kueue.FairSharing) string {
	if f == nil || f.Weight == nil {
		return "1"
	}
	return f.Weight.String()
}

func stopPolicy(p *kueue.StopPolicy) string {
	if p == nil {
		return string(kueue.None)
	}
	return string(*p)
}

// text is a value in one line, and empty if there is none.
func text(value any) string {
	line, err := json.Marshal(value)
	if empty := string(line); err != nil || empty == "null" || empty == "{}" || empty == "[]" {
		return ""
	}
	return string(line)
}

// flavors are the flavors in the order in which work tries them.
func flavors(groups []kueue.ResourceGroup) string {
	var names []string
	for _, g := range groups {
		for _, f := range g.Flavors {
			names = append(names, string(f.Name))
		}
	}
	return strings.Join(names, ", ")
}

func resources(groups []kueue.ResourceGroup) string {
	var sets []string
	for _, g := range groups {
		var names []string
		for _, name := range g.CoveredResources {
			names = append(names, string(name))
		}
		slices.Sort(names)
		sets = append(sets, strings.Join(names, ", "))
	}
	return strings.Join(sets, "; ")
}

func quota(groups []kueue.ResourceGroup) teamsfile.Quota {
	all := teamsfile.Quota{}
	for _, g := range groups {
		for _, f := range g.Flavors {
			shares := map[string]teamsfile.Share{}
			for _, r := range f.Resources {
				share := teamsfile.Share{Nominal: teamsfile.Amount{Quantity: r.NominalQuota}}
				if r.BorrowingLimit != nil {
					share.BorrowingLimit = &teamsfile.Amount{Quantity: *r.BorrowingLimit}
				}
				if r.LendingLimit != nil {
					share.LendingLimit = &teamsfile.Amount{Quantity: *r.LendingLimit}
				}
				shares[string(r.Name)] = share
			}
			all[string(f.Name)] = shares
		}
	}
	return all
}

// Wanted returns what the manifests of the chart have of the kinds that are compared.
func Wanted(manifests []string) ([]Object, error) {
	var all []Object
	for _, manifest := range manifests {
		for _, document := range strings.Split(manifest, "\n---\n") {
			some, err := decoded([]byte(document))
			if err != nil {
				return nil, fmt.Errorf("cannot read what the chart renders: %w", err)
			}
			all = append(all, some...)
		}
	}
	return sorted(append(all, existing(all)...)), nil
}

func decoded(text []byte) ([]Object, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	read, known := map[string]func([]byte) ([]Object, error){
		"Namespace": as(ofNamespace), "ClusterQueue": as(ofClusterQueue), "LocalQueue": as(ofLocalQueue), "Cohort": as(ofCohort), "ResourceFlavor": as(ofFlavor),
		"ConfigMap": slackQueues,
	}[kind.Kind]
	if !known {
		return nil, nil
	}
	return read(text)
}

func as[T any](of func(T) Object) func([]byte) ([]Object, error) {
	return func(text []byte) ([]Object, error) {
		var o T
		err := yaml.Unmarshal(text, &o)
		return []Object{of(o)}, err
	}
}

// existing are the namespaces that the chart does not create. They need the label.
func existing(all []Object) []Object {
	var more []Object
	for _, o := range all {
		same := func(n Object) bool { return n.Kind == "Namespace" && n.Name == o.Namespace }
		if o.Kind == "LocalQueue" && !slices.ContainsFunc(all, same) {
			more = append(more, Object{Kind: "Namespace", Name: o.Namespace, some: true, fields: map[string]string{"label " + teamLabel: "true"}})
		}
	}
	return more
}

func sorted(all []Object) []Object {
	slices.SortFunc(all, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}
