// SPDX-License-Identifier: Apache-2.0

// Package preflight answers: why would this release not work on this cluster? It compares the
// observed state with the wanted state, and returns a sentence for each problem, which says
// what to do. It is pure.
package preflight

import "github.com/mlbatch/mlbatch/setup"

// Facts is what was observed before anything is changed.
type Facts struct {
	Supported setup.Supported
	// Kubernetes is the version of the API server.
	Kubernetes string
	OpenShift  bool
	// Values are the values of the platform, with the defaults of its chart.
	Values map[string]any
	// Releases are the wanted releases: the platform and, optionally, the teams.
	Releases []Release
	// Denied are the rights that the user lacks, such as "create clusterroles".
	Denied []string
	// Operators are the Deployments of parts that our releases do not own.
	Operators []Operator
	// PodGroups is set if the cluster serves PodGroups, from whichever installation.
	PodGroups bool
	// Kueue is a Kueue that we did not install. It is used only if the platform's is disabled.
	Kueue Kueue
	// PullSecrets are the Secrets for registries that pods of the platform name and cannot use.
	PullSecrets []PullSecret
	// DefaultClass is a PriorityClass that is not ours, and which pods get that name none.
	DefaultClass DefaultClass
	// Devices are the extended resources of the nodes, such as nvidia.com/gpu.
	Devices []string
	// TakeOwnership is set if the releases may adopt objects of which no other operator runs.
	TakeOwnership bool
}

// Release is the observed state of a Helm release.
type Release struct {
	Name, Namespace string
	// Wanted is the version of the chart, Installed the version on the cluster, or empty.
	Wanted, Installed string
	// Elsewhere is another namespace that has the release, if this one does not have it.
	Elsewhere string
	// Invalid is why the chart cannot be rendered with these values.
	Invalid string
	// Taken are objects of the release that exist and have another owner.
	Taken []Object
	// Unknown are objects of kinds that the cluster does not serve.
	Unknown []Object
	// Leaving are objects of the release that are being deleted.
	Leaving []Object
	// Stored are CRDs with objects stored in versions that the release no longer has.
	Stored []Object
	// Absent are namespaces of objects of the release that neither exist nor are a part of it.
	Absent []string
	// Unlabelled are namespaces with queues of the release that exist without the label of teams.
	Unlabelled []string
	// Foreign are top-level values that belong to the other chart.
	Foreign []string
}

// Object is an object of a release.
type Object struct {
	Kind, Name string
	// Part is the name of its part, or empty.
	Part string
	// Owner is the Helm release that owns it on the cluster; its name is empty if there is
	// none.
	Owner Owner
	// Versions are the stored versions that the release no longer has.
	Versions []string
	// Fixed is set if it differs from the wanted object in immutable fields.
	Fixed bool
}

// Owner names a Helm release.
type Owner struct{ Name, Namespace string }

// Operator is a Deployment of an operator that is not ours.
type Operator struct {
	Part, Namespace, Name string
	// Account is the name of its service account.
	Account string
	// Owner is the Helm release that owns it; its name is empty if there is none.
	Owner Owner
}

// Kueue is the observed state of a Kueue that we did not install.
type Kueue struct {
	// Served is set if there is one, Current if it serves kueue.x-k8s.io/v1beta2.
	Served, Current bool
	// Version is the version in its image tag, or empty.
	Version string
	// Configured is set if its configuration could be read.
	Configured bool
	// Frameworks are the frameworks in its configuration. It leaves external ones to others.
	Frameworks []string
	// ManagesAll is the value of manageJobsWithoutQueueName.
	ManagesAll bool
	// Evicts is set if it evicts work whose pods are not ready in time.
	Evicts bool
}

// PullSecret is a Secret for a registry.
type PullSecret struct {
	Name string
	// Type is that of a Secret which is there, and has no credentials for a registry.
	Type string
}

// DefaultClass is the default PriorityClass of a cluster.
type DefaultClass struct {
	Name string
	// Rival is the class of the release that would be another default.
	Rival string
	// Refused are the namespaces of the release in which pods may not have it.
	Refused []string
}
