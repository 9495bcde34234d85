// SPDX-License-Identifier: Apache-2.0

// Package checkup answers: what is wrong with this cluster, and what can an administrator do? It
// turns objects into findings. It reads nothing and writes nothing.
package checkup

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/setup"
)

// Kind is a kind of objects that is read as a whole, by the name of its resource.
type Kind string

// These are read.
const (
	Nodes         Kind = "nodes"
	Pods          Kind = "pods"
	Namespaces    Kind = "namespaces"
	Deployments   Kind = "deployments"
	Definitions   Kind = "customresourcedefinitions"
	ConfigMaps    Kind = "configmaps"
	ClusterQueues Kind = "clusterqueues"
	Cohorts       Kind = "cohorts"
	Flavors       Kind = "resourceflavors"
	LocalQueues   Kind = "localqueues"
	Workloads     Kind = "workloads"
	AppWrappers   Kind = "appwrappers"
)

// Objects are what was read.
type Objects struct {
	Now           time.Time
	Nodes         []corev1.Node
	Pods          []corev1.Pod
	Namespaces    []corev1.Namespace
	Deployments   []appsv1.Deployment
	Definitions   []Definition
	ClusterQueues []kueue.ClusterQueue
	Cohorts       []kueue.Cohort
	Flavors       []kueue.ResourceFlavor
	LocalQueues   []kueue.LocalQueue
	Workloads     []kueue.Workload
	AppWrappers   []v1beta2.AppWrapper
	// Kueue is how Kueue is configured, or nil if that is not known.
	Kueue *Kueue
	// Signs are the AppWrapper controller's settings about nodes.
	Signs nodesigns.Settings
	// DeclaredSlack are the slack queues that the file of the teams has.
	DeclaredSlack []string
	// Release has the versions that are wanted.
	Release setup.Versions
	// Install is what 'mlbatch install' would say. It is looked at before an installation.
	Install Install
	// Unread says in a sentence why a kind could not be read.
	Unread map[Kind]string
}

// Definition is a CustomResourceDefinition.
type Definition struct {
	Name   string   `json:"name"`
	Served []string `json:"served"`
}

// Kueue is what matters of its configuration.
type Kueue struct {
	// Deployment is NAMESPACE/NAME of the Deployment that has it.
	Deployment string `json:"deployment"`
	// Version is the tag of its image, or empty if that is no version.
	Version string `json:"version"`
	// ManagesAll is the value of manageJobsWithoutQueueName.
	ManagesAll bool `json:"managesAll"`
	// Frameworks are its integrations. It leaves external ones to others.
	Frameworks []string `json:"frameworks"`
	// WaitsForPods is set if it has a section waitForPodsReady.
	WaitsForPods bool `json:"waitsForPods"`
	// Gates are its feature gates, of its configuration and its command line.
	Gates map[string]bool `json:"gates"`
}

// Install has the sentences of package preflight.
type Install struct {
	Problems []string `json:"problems"`
	Unusual  []string `json:"unusual"`
}

// Severity says how bad a finding is.
type Severity string

// These are the severities, the worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Severities are all of them, the worst first.
var Severities = []Severity{Error, Warning, Note}

// Finding is something that is wrong.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Subject is KIND NAME, with the namespace before the name.
	Subject string `json:"subject"`
	Means   string `json:"means"`
	// Evidence is what was read or computed.
	Evidence []Evidence `json:"evidence"`
	// Next is what to do.
	Next string `json:"next"`
}

// Evidence is a value, and what it is.
type Evidence struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Report is the answer.
type Report struct {
	// Installed is whether the cluster has the platform; absent if that could not be seen.
	Installed *bool     `json:"installed,omitempty"`
	Findings  []Finding `json:"items"`
	// Unknown says what could not be read, and is therefore not checked.
	Unknown []string `json:"unknown,omitempty"`
}

// Find returns what is wrong, the worst first.
func Find(o Objects) Report {
	r := Report{Findings: []Finding{}}
	if o.read(Deployments) {
		there := o.installed()
		r.Installed = &there
	}
	for _, entry := range Catalogue {
		if !o.read(entry.Needs...) {
			continue
		}
		for _, s := range entry.look(o) {
			r.Findings = append(r.Findings, Finding{entry.Code, entry.Severity, s.subject, entry.Means, s.evidence, entry.Next})
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	for _, sentence := range o.Unread {
		r.Unknown = append(r.Unknown, sentence)
	}
	slices.Sort(r.Unknown)
	r.Unknown = slices.Compact(r.Unknown)
	return r
}

// Has reports whether a finding is as bad as this, or worse.
func (r Report) Has(bad Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return rank(f.Severity) <= rank(bad) })
}

func rank(s Severity) int { return slices.Index(Severities, s) }

// read reports whether all of these kinds were.
func (o Objects) read(kinds ...Kind) bool {
	return !slices.ContainsFunc(kinds, func(k Kind) bool { _, unread := o.Unread[k]; return unread })
}

// sight is what a check sees of a finding.
type sight struct {
	subject  string
	evidence []Evidence
}

// of begins a sight; evidence is name, value, name, value.
func of(subject string, evidence ...string) sight {
	s := sight{subject: subject}
	for i := 0; i+1 < len(evidence); i += 2 {
		if evidence[i+1] != "" {
			s.evidence = append(s.evidence, Evidence{evidence[i], evidence[i+1]})
		}
	}
	return s
}

// some are the first names of many.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}
