// SPDX-License-Identifier: Apache-2.0

// Package preflight answers: why would this release not work on this cluster? It compares
// what was observed with what is wanted, and returns a sentence for each problem that says
// what to do. It is pure.
package preflight

import "github.com/mlbatch/mlbatch/setup"

// Facts are what was seen before anything is changed.
type Facts struct {
	Supported setup.Supported
	// Kubernetes is the version of the API server.
	Kubernetes string
	OpenShift  bool
	// Values of the platform, with the defaults of its chart.
	Values map[string]any
	// Releases are those that are wanted: the platform's, and perhaps the teams'.
	Releases []Release
	// Denied is what the user may not do, such as "create clusterroles".
	Denied []string
	// Operators are the Deployments of parts that belong to no release of ours.
	Operators []Operator
	// PodGroups is whether the cluster has them, whoever has installed them.
	PodGroups bool
	// Kueue is that of the cluster; it is looked at only if the platform's is off.
	Kueue Kueue
	// TakeOwnership is whether what belongs to nobody who runs may be taken.
	TakeOwnership bool
}

// Release is what is known of a Helm release.
type Release struct {
	Name, Namespace string
	// Wanted is the version of the chart, Installed that which is there, or empty.
	Wanted, Installed string
	// Elsewhere is another namespace that has it, if this one has not.
	Elsewhere string
	// Invalid is why the chart cannot be rendered with these values.
	Invalid string
	// Taken are objects of the release that exist and belong to somebody else.
	Taken []Object
	// Unknown are objects of kinds that the cluster does not serve.
	Unknown []Object
	// Leaving are objects of the release that are being deleted.
	Leaving []Object
	// Stored are CustomResourceDefinitions with objects in versions that the release
	// does not know.
	Stored []Object
}

// Object is an object of a release.
type Object struct {
	Kind, Name string
	// Part is the name of the part that it is of, or empty.
	Part string
	// Owner is the Helm release in the cluster that it belongs to; its name is empty if
	// there is none.
	Owner Owner
	// Versions are stored and not known to the release.
	Versions []string
	// Fixed is whether it differs from that of the release in what nobody can change.
	Fixed bool
}

// Owner is a Helm release by its name.
type Owner struct{ Name, Namespace string }

// Operator is a Deployment that somebody else has made.
type Operator struct {
	Part, Namespace, Name string
	// Owner is the Helm release that it belongs to; its name is empty if there is none.
	Owner Owner
}

// Kueue is what is known of the cluster's own.
type Kueue struct {
	// Served is whether there is one, Current whether it serves kueue.x-k8s.io/v1beta2.
	Served, Current bool
	// Version is that of its image, or empty.
	Version string
	// Configured is whether its configuration could be read.
	Configured bool
	// Frameworks are those that its configuration lists, external ones among them.
	Frameworks []string
	// ManagesAll is manageJobsWithoutQueueName.
	ManagesAll bool
}
