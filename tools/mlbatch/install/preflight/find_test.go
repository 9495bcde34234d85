// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/setup"
)

// fine returns an empty cluster, and the platform with default values.
func fine() Facts {
	values := map[string]any{"roles": map[string]any{"openshift": false}}
	for _, part := range []string{"kueue", "coscheduler", "training-operator", "kuberay-operator", "appwrapper"} {
		values[part] = map[string]any{"enabled": true}
	}
	return Facts{
		Supported:  setup.Supported{Kubernetes: ">=1.30.0-0 <1.38.0-0", Kueue: ">=0.15.0-0 <0.20.0-0"},
		Kubernetes: "v1.34.4", Values: values,
		Releases: []Release{{Name: "mlbatch", Namespace: "mlbatch-system", Wanted: "0.2.1"}},
	}
}

func off(f *Facts, part string) { f.Values[part] = map[string]any{"enabled": false} }

// theirKueue adds a suitable Kueue that we did not install.
func theirKueue(f *Facts) {
	off(f, "kueue")
	f.Kueue = Kueue{Served: true, Current: true, Version: "v0.19.2", Configured: true, ManagesAll: true, Frameworks: []string{"workload.codeflare.dev/appwrapper"}}
}

func runs(part, namespace, name string) func(*Facts) {
	return func(f *Facts) {
		f.Operators = append(f.Operators, Operator{Part: part, Namespace: namespace, Name: name})
	}
}

func taken3(f *Facts, owner Owner) {
	for _, name := range []string{"workloads.kueue.x-k8s.io", "cohorts.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io"} {
		f.Releases[0].Taken = append(f.Releases[0].Taken, Object{Kind: "CustomResourceDefinition", Name: name, Part: "kueue", Owner: owner})
	}
}

func priorities(fixed bool) func(*Facts) {
	return func(f *Facts) {
		for _, name := range []string{"low-priority", "high-priority"} {
			f.Releases[0].Taken = append(f.Releases[0].Taken, Object{Kind: "PriorityClass", Name: name, Fixed: fixed})
		}
	}
}

// gangs adds PodGroups that another scheduler brought.
func gangs(f *Facts) {
	off(f, "coscheduler")
	f.PodGroups = true
	f.Values["appwrapper"] = wrappedFor("scheduler-plugins-scheduler")
}

func wrappedFor(scheduler string) map[string]any {
	return map[string]any{"enabled": true, "config": map[string]any{"appwrapper": map[string]any{"schedulerName": scheduler}}}
}

func nodesHave(f *Facts, devices ...string) {
	f.Values["global"] = map[string]any{"gpuResourceName": "nvidia.com/gpu"}
	f.Devices = devices
}

// theirKubeRay runs under an account of its own, in a platform with policies.
func theirKubeRay(f *Facts) {
	off(f, "kuberay-operator")
	f.Operators = []Operator{{Part: "kuberay-operator", Namespace: "ray", Name: "kuberay-operator", Account: "ray-operator"}}
	f.Values["policies"] = map[string]any{"growth": map[string]any{"enabled": true}, "controllers": map[string]any{
		"serviceAccounts": []any{map[string]any{"name": "kuberay-operator", "namespace": "kuberay-system"}},
	}}
}

const (
	rights  = "you may not create clusterroles, create namespaces here: use the credentials of a cluster administrator (--kubeconfig, --context)"
	theirs  = "another Kueue runs already, the Deployment kueue-controller-manager in namespace kueue-system: disable ours with --set kueue.enabled=false and set theirs as docs/install.md says, or remove theirs first"
	noKueue = "the cluster has no Kueue, and kueue.enabled is false: set it to true, or install Kueue first"
)

func TestWhatIsKnownToGoWrongIsRefusedWithASentence(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   []string
	}{
		"a cluster with nothing on it": {func(*Facts) {}, nil},
		"an older Kubernetes": {func(f *Facts) { f.Kubernetes = "v1.29.9" },
			[]string{"this cluster has Kubernetes v1.29.9, and MLBatch needs 1.30.0 to before 1.38.0: use another cluster, or upgrade this one"}},
		"a newer Kubernetes": {func(f *Facts) { f.Kubernetes = "v1.38.0" },
			[]string{"this cluster has Kubernetes v1.38.0, and MLBatch needs 1.30.0 to before 1.38.0: use another cluster, or upgrade this one"}},
		"the oldest Kubernetes of a provider": {func(f *Facts) { f.Kubernetes = "v1.30.0-gke.100" }, nil},
		"values that the chart refuses": {func(f *Facts) { f.Releases[0].Invalid = "the values of mlbatch are wrong: kueu is not known" },
			[]string{"the values of mlbatch are wrong: kueu is not known"}},
		"a user who may not install": {func(f *Facts) { f.Denied = []string{"create clusterroles", "create namespaces"} }, []string{rights}},
		"rights that are missing are all that is said": {func(f *Facts) {
			f.Denied = []string{"create clusterroles", "create namespaces"}
			runs("kueue", "kueue-system", "kueue-controller-manager")(f)
		}, []string{rights}},
		"the release is in another namespace": {func(f *Facts) {
			f.Operators = []Operator{{Part: "kueue", Namespace: "queues", Name: "kueue-controller-manager", Owner: Owner{"mlbatch", "queues"}}}
		}, []string{"the release mlbatch is in namespace queues already: use that one with --namespace queues, or uninstall it there first"}},
		"the release is in another namespace, without any operator": {func(f *Facts) { f.Releases[0].Elsewhere = "queues" },
			[]string{"the release mlbatch is in namespace queues already: use that one with --namespace queues, or uninstall it there first"}},
		"a newer release is there": {func(f *Facts) { f.Releases[0].Installed = "0.3.0" },
			[]string{"the release mlbatch has version 0.3.0, but 0.2.1 is an older minor version; downgrading is not supported: use the command and charts of 0.3.0 or later"}},
		"a newer patch is there":    {func(f *Facts) { f.Releases[0].Installed = "0.2.9" }, nil},
		"an older release is there": {func(f *Facts) { f.Releases[0].Installed = "0.1.0" }, nil},
		"objects in a version that is gone": {func(f *Facts) {
			f.Releases[0].Stored = []Object{{Kind: "CustomResourceDefinition", Name: "cohorts.kueue.x-k8s.io", Versions: []string{"v1alpha1"}}}
		}, []string{"the cluster has objects of cohorts.kueue.x-k8s.io stored as v1alpha1, which mlbatch 0.2.1 no longer supports: rewrite them first as docs/install.md says"}},
		"monitors without Prometheus": {func(f *Facts) {
			f.Releases[0].Unknown = []Object{{Kind: "ServiceMonitor", Name: "kueue"}, {Kind: "ServiceMonitor", Name: "appwrapper"}}
		}, []string{"the values need the ServiceMonitor kueue and 1 more object, but the cluster does not serve that kind: install its operator, or change the values"}},
		"what the release has is just being deleted": {func(f *Facts) {
			f.Releases[0].Leaving = []Object{{Kind: "Namespace", Name: "mlbatch-system"}}
		}, []string{"the Namespace mlbatch-system is being deleted: wait until it is gone, and run the command again"}},
		"a team's queue is being deleted, and there is no Kueue to end it": {func(f *Facts) {
			f.Releases[0].Installed = ""
			f.Releases = append(f.Releases[:1], Release{Name: "teams", Leaving: []Object{{Kind: "ClusterQueue", Name: "blue"}}})
		}, []string{"the ClusterQueue blue is being deleted, which only Kueue can complete: install without --teams first, and then run the command again"}},
		"a team's queue is being deleted": {func(f *Facts) {
			f.Releases[0].Installed = "0.2.1"
			f.Releases = append(f.Releases[:1], Release{Name: "teams", Leaving: []Object{{Kind: "ClusterQueue", Name: "blue"}}})
		}, []string{"the ClusterQueue blue is being deleted: wait until it is gone, and run the command again"}},
		"another Kueue runs": {runs("kueue", "kueue-system", "kueue-controller-manager"), []string{theirs}},
		"another Kueue runs and has objects": {func(f *Facts) {
			runs("kueue", "kueue-system", "kueue-controller-manager")(f)
			taken3(f, Owner{})
		}, []string{theirs}},
		"another Kueue runs, and everything may be taken": {func(f *Facts) {
			runs("kueue", "kueue-system", "kueue-controller-manager")(f)
			f.TakeOwnership = true
		}, []string{theirs}},
		"another training operator, and another KubeRay": {func(f *Facts) {
			runs("training-operator", "kubeflow", "training-operator")(f)
			runs("kuberay-operator", "ray-system", "kuberay-operator")(f)
		}, []string{
			"another training operator runs already, the Deployment training-operator in namespace kubeflow: disable ours with --set training-operator.enabled=false and set theirs as docs/install.md says, or remove theirs first",
			"another KubeRay runs already, the Deployment kuberay-operator in namespace ray-system: disable ours with --set kuberay-operator.enabled=false and set theirs as docs/install.md says, or remove theirs first",
		}},
		"another AppWrapper controller": {runs("appwrapper", "appwrapper-system", "appwrapper-controller-manager"),
			[]string{"another AppWrapper controller runs already, the Deployment appwrapper-controller-manager in namespace appwrapper-system: disable ours with --set appwrapper.enabled=false and set theirs as docs/install.md says, or remove theirs first"}},
		"another JobSet, and ours is off": {runs("jobset", "jobset-system", "jobset-controller-manager"), nil},
		"another training operator, and ours is off": {func(f *Facts) {
			runs("training-operator", "kubeflow", "training-operator")(f)
			off(f, "training-operator")
		}, nil},
		"definitions that somebody has left": {func(f *Facts) { taken3(f, Owner{}) },
			[]string{"the cluster has the CustomResourceDefinition workloads.kueue.x-k8s.io and 2 more objects already, owned by no release: disable ours with --set kueue.enabled=false, or adopt it with --take-ownership, which keeps its objects"}},
		"definitions of another release": {func(f *Facts) { taken3(f, Owner{"queues", "kueue-system"}) },
			[]string{"the cluster has the CustomResourceDefinition workloads.kueue.x-k8s.io and 2 more objects already, owned by the release queues in namespace kueue-system: disable ours with --set kueue.enabled=false, or adopt it with --take-ownership, which keeps its objects, and never uninstall the release queues, which would delete them"}},
		"definitions that a release of ours has left elsewhere": {func(f *Facts) { taken3(f, Owner{"mlbatch", "queues"}) },
			[]string{"a release mlbatch in namespace queues has the CustomResourceDefinition workloads.kueue.x-k8s.io and 2 more objects: use that one with --namespace queues, or adopt it with --take-ownership"}},
		"a definition and another object of one part": {func(f *Facts) {
			f.Releases[0].Taken = []Object{{Kind: "CustomResourceDefinition", Name: "rayjobs.ray.io", Part: "kuberay-operator"}, {Kind: "ClusterRole", Name: "ray-operator", Part: "kuberay-operator"}}
		}, []string{
			"the cluster has the CustomResourceDefinition rayjobs.ray.io already, owned by no release: disable ours with --set kuberay-operator.enabled=false, or adopt it with --take-ownership, which keeps its objects",
			"the cluster has the ClusterRole ray-operator already, owned by no release: disable ours with --set kuberay-operator.enabled=false, remove it, or adopt it with --take-ownership",
		}},
		"priorities of the same names": {priorities(false),
			[]string{"the cluster has the PriorityClass low-priority and 1 more object already, owned by no release: disable ours with --set priorities.enabled=false, remove it, or adopt it with --take-ownership"}},
		"priorities of the same names that may be taken": {func(f *Facts) { priorities(false)(f); f.TakeOwnership = true }, nil},
		"priorities of the same names and other values": {func(f *Facts) { priorities(true)(f); f.TakeOwnership = true },
			[]string{"the cluster has the PriorityClass low-priority and 1 more object already, owned by no release: disable ours with --set priorities.enabled=false, because its value or preemptionPolicy differs, and both are immutable"}},
		"definitions that may be taken": {func(f *Facts) { taken3(f, Owner{}); f.TakeOwnership = true }, nil},
		"a flavor that somebody has made": {func(f *Facts) {
			f.Releases = append(f.Releases, Release{Name: "teams", Taken: []Object{{Kind: "ResourceFlavor", Name: "default-flavor"}}})
		}, []string{"the cluster has the ResourceFlavor default-flavor already, owned by no release: remove it, or adopt it with --take-ownership"}},
		"teams that are in another namespace": {func(f *Facts) {
			f.Releases = append(f.Releases, Release{Name: "teams", Namespace: "mlbatch-system", Taken: []Object{{Kind: "Cohort", Name: "root", Owner: Owner{"teams", "tenants"}}}})
		}, []string{"a release teams in namespace tenants has the Cohort root: use that one with --teams-namespace tenants, or adopt it with --take-ownership"}},
		"their Kueue does all that is needed":        {theirKueue, nil},
		"their Kueue's configuration cannot be read": {func(f *Facts) { theirKueue(f); f.Kueue.Configured, f.Kueue.Frameworks = false, nil }, nil},
		"there is no Kueue at all":                   {func(f *Facts) { off(f, "kueue") }, []string{noKueue}},
		"their Kueue is too old": {func(f *Facts) { theirKueue(f); f.Kueue.Version = "v0.14.9" },
			[]string{"the cluster's Kueue is v0.14.9: upgrade it to 0.15.0 or later first"}},
		"their Kueue is of a nightly build": {func(f *Facts) { theirKueue(f); f.Kueue.Version = "v0.19.0-devel-15-gabc" }, nil},
		"their Kueue is newer than this release": {func(f *Facts) { theirKueue(f); f.Kueue.Version = "v0.20.1" },
			[]string{"the cluster's Kueue is v0.20.1, and this release knows Kueue 0.15.0 to before 0.20.0: 0.20 no longer serves kueue.x-k8s.io/v1beta1 " +
				"and can lower quotas itself; use an older Kueue, or a release of MLBatch that knows this one"}},
		"their Kueue does not say its version, and is too old": {func(f *Facts) { theirKueue(f); f.Kueue.Version, f.Kueue.Current = "", false },
			[]string{"the cluster's Kueue does not serve kueue.x-k8s.io/v1beta2: upgrade it to 0.15.0 or later first"}},
		"their Kueue does not know AppWrappers": {func(f *Facts) { theirKueue(f); f.Kueue.Frameworks = []string{"batch/job"} },
			[]string{"AppWrappers would never start: add workload.codeflare.dev/appwrapper to integrations.frameworks in the configuration of the cluster's Kueue"}},
		"a training operator without PodGroups": {func(f *Facts) { off(f, "coscheduler") },
			[]string{"the training operator needs PodGroups of scheduling.x-k8s.io, which the cluster does not have: leave coscheduler.enabled at true, install a Coscheduler first, or set training-operator.enabled to false"}},
		"values of the teams among those of the platform": {func(f *Facts) {
			f.Releases[0].Invalid, f.Releases[0].Foreign = "the chart does not take these values: mlbatch: nothing is called 'flavors' or 'teams' here", []string{"flavors", "teams"}
		}, []string{"the chart does not take these values: mlbatch: nothing is called 'flavors' or 'teams' here; flavors is a value of the teams: give the file with --teams"}},
		"values of the platform among those of the teams": {func(f *Facts) {
			f.Releases = append(f.Releases, Release{Name: "teams", Invalid: "the chart does not take these values: teams: nothing is called 'kueue' here", Foreign: []string{"kueue"}})
		}, []string{"the chart does not take these values: teams: nothing is called 'kueue' here; kueue is a value of the platform: give the file with --values"}},
		"certificates of cert-manager without cert-manager": {func(f *Facts) {
			f.Releases[0].Unknown = []Object{{Kind: "Certificate", Name: "appwrapper-serving-cert"}, {Kind: "Issuer", Name: "appwrapper-selfsigned"}}
		}, []string{"the values need the Certificate appwrapper-serving-cert and 1 more object, but the cluster does not serve that kind: install its operator, or change the values"}},
		"the namespace of a team does not exist": {func(f *Facts) {
			f.Releases = append(f.Releases, Release{Name: "teams", Absent: []string{"medical"}})
		}, []string{"the release teams has objects in the namespace medical, which does not exist: create it first, or let the release create it (createNamespace)"}},
		"a namespace that KubeRay watches does not exist": {func(f *Facts) { f.Releases[0].Absent = []string{"blue"} },
			[]string{"the release mlbatch has objects in the namespace blue, which does not exist: create it first, or change the values that name it"}},
		"the namespace of a team is being deleted": {func(f *Facts) {
			f.Releases[0].Installed = "0.2.1"
			f.Releases = append(f.Releases[:1], Release{Name: "teams", Leaving: []Object{{Kind: "Namespace", Name: "medical"}}})
		}, []string{"the Namespace medical is being deleted: wait until it is gone, and run the command again"}},
		"two default PriorityClasses": {func(f *Facts) { f.DefaultClass = DefaultClass{Name: "normal", Rival: "default-priority"} },
			[]string{"the cluster's default PriorityClass is normal, and there can be only one: set priorities.globalDefault to false, or globalDefault of normal"}},
		"their Kueue is in a namespace of somebody's choice": {func(f *Facts) {
			theirKueue(f)
			f.Operators = []Operator{{Part: "kueue", Namespace: "queues", Name: "kueue-controller-manager", Account: "kueue-controller-manager"}}
		}, []string{"the cluster's Kueue could not start AppWrappers: add its service account queues/kueue-controller-manager to appwrapper.config.appwrapper.kueue.serviceAccounts"}},
		"their Kueue has the service account of the values": {func(f *Facts) {
			theirKueue(f)
			f.Operators = []Operator{{Part: "kueue", Namespace: "queues", Name: "kueue-controller-manager", Account: "kueue"}}
			f.Values["appwrapper"] = map[string]any{"enabled": true, "config": map[string]any{"appwrapper": map[string]any{"kueue": map[string]any{"serviceAccounts": []any{"queues/kueue"}}}}}
		}, nil},
		"their Kueue has the usual service account": {func(f *Facts) {
			theirKueue(f)
			f.Operators = []Operator{{Part: "kueue", Namespace: "kueue-system", Name: "kueue-controller-manager", Account: "kueue-controller-manager"}}
		}, nil},
		"another gang scheduler, and ours is off": {func(f *Facts) {
			gangs(f)
			f.Values["appwrapper"] = wrappedFor("volcano")
			runs("", "volcano-system", "volcano-scheduler")(f)
		}, nil},
		"accelerators of two makers":                    {func(f *Facts) { nodesHave(f, "amd.com/gpu", "nvidia.com/gpu") }, nil},
		"nodes without accelerators":                    {func(f *Facts) { nodesHave(f, "rdma/hca") }, nil},
		"somebody's scheduler is there":                 {func(f *Facts) { gangs(f); runs("coscheduler", "kube-system", "scheduler-plugins-scheduler")(f) }, nil},
		"pods go to a scheduler of another name":        {func(f *Facts) { gangs(f); f.Values["appwrapper"] = wrappedFor("theirs") }, nil},
		"a training operator with somebody's PodGroups": {func(f *Facts) { off(f, "coscheduler"); f.PodGroups = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			facts := fine()
			c.change(&facts)
			refusals, warnings := Find(facts)
			if diff := cmp.Diff(c.want, refusals); diff != "" {
				t.Error(diff)
			}
			if len(warnings) > 0 {
				t.Errorf("there are warnings as well: %q", warnings)
			}
		})
	}
}

func TestWhatMayBeMeantSoIsAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"OpenShift with values that are not for it": {func(f *Facts) { f.OpenShift = true },
			"this cluster is OpenShift, which may reject the pods of these values: use --profile openshift or --profile openshift-ai"},
		"a scheduler that nobody has seen": {gangs,
			"no Deployment of the scheduler scheduler-plugins-scheduler was found, and coscheduler.enabled is false: wrapped pods that name it stay Pending; name another with --set appwrapper.config.appwrapper.schedulerName"},
		"values for OpenShift elsewhere": {func(f *Facts) { f.Values["roles"] = map[string]any{"openshift": true} },
			"the values are for OpenShift, but this cluster is not: use another --profile"},
		"OpenShift AI may have an AppWrapper controller": {runs("", "redhat-ods-applications", CodeFlareOperator),
			"the CodeFlare operator runs in namespace redhat-ods-applications: ours does nothing until its AppWrapper controller is switched off (docs/takeover.md)"},
		"their Kueue lets work run that names no queue": {func(f *Facts) { theirKueue(f); f.Kueue.ManagesAll = false },
			"work that names no queue runs without quota: set manageJobsWithoutQueueName and managedJobsNamespaceSelector of the cluster's Kueue as docs/install.md says"},
		"a Secret for the registry that is not there": {func(f *Facts) { f.PullSecrets = []PullSecret{{Name: "company"}} },
			"namespace mlbatch-system has no Secret company, with which pods of the platform would pull their images: create it with 'kubectl create secret docker-registry company --namespace mlbatch-system'"},
		"a Secret for the registry of another type": {func(f *Facts) { f.PullSecrets = []PullSecret{{Name: "company", Type: "Opaque"}} },
			"the Secret company in namespace mlbatch-system has the type Opaque, so pods cannot pull their images with it: create it with 'kubectl create secret docker-registry company --namespace mlbatch-system'"},
		"the namespace of a team without its label": {func(f *Facts) {
			f.Releases = append(f.Releases, Release{Name: "teams", Unlabelled: []string{"medical"}})
		}, "the namespace medical of a team lacks a label, so its work would run without quota and policies: run 'kubectl label namespace medical mlbatch-team-namespace=true'"},
		"a default PriorityClass that teams may not use": {func(f *Facts) { f.DefaultClass = DefaultClass{Name: "normal", Refused: []string{"blue", "red"}} },
			"pods that name no PriorityClass get normal, the cluster's default, and are refused in blue, red: add it to priorities of the teams"},
		"another gang scheduler": {runs("", "volcano-system", "volcano-scheduler"),
			"another gang scheduler runs, the Deployment volcano-scheduler in namespace volcano-system: both may place pods on the same devices; keep their nodes apart, or remove one of them"},
		"an operator that policies do not know": {theirKubeRay,
			"the cluster's KubeRay, the service account ray/ray-operator, may not act as a controller, so policies refuse what it creates for teams: add the account to policies.controllers.serviceAccounts"},
		"a Kueue that takes fewer pod sets": {func(f *Facts) {
			theirKueue(f)
			f.Kueue.Version = "v0.16.1"
			f.Values["appwrapper"] = map[string]any{"enabled": true, "config": map[string]any{"appwrapper": map[string]any{"podSetLimit": 18.0}}}
		}, "the cluster's Kueue v0.16.1 takes at most 8 pod sets, and AppWrappers may have 18: set appwrapper.config.appwrapper.podSetLimit to 8"},
		"a Kueue that evicts what does not become ready": {func(f *Facts) { theirKueue(f); f.Kueue.Evicts = true },
			"the cluster's Kueue evicts work whose pods are not ready, which the AppWrapper controller starts again: remove waitForPodsReady from its configuration, or set its feature gate DisableWaitForPodsReady to true"},
		"accelerators of another maker": {func(f *Facts) { nodesHave(f, "amd.com/gpu", "rdma/hca") },
			"no node has nvidia.com/gpu, and some have amd.com/gpu: set global.gpuResourceName to that, so that pods are packed by it and leave nodes where it is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := fine()
			c.change(&facts)
			refusals, warnings := Find(facts)
			if len(refusals) > 0 {
				t.Errorf("it is refused: %q", refusals)
			}
			if diff := cmp.Diff([]string{c.want}, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An operator may act as a controller by its account, by its group, or if no policy asks.
func TestAnOperatorThatMayActAsAControllerIsNoFinding(t *testing.T) {
	for name, allow := range map[string]func(policies map[string]any){
		"by its account": func(p map[string]any) {
			p["controllers"] = map[string]any{"serviceAccounts": []any{map[string]any{"name": "ray-operator", "namespace": "ray"}}}
		},
		"by the group of its namespace": func(p map[string]any) {
			p["controllers"] = map[string]any{"groups": []any{"system:serviceaccounts:ray"}}
		},
		"because no policy asks": func(p map[string]any) { p["growth"] = map[string]any{"enabled": false} },
	} {
		t.Run(name, func(t *testing.T) {
			facts := fine()
			theirKubeRay(&facts)
			allow(facts.Values["policies"].(map[string]any))
			if refusals, warnings := Find(facts); len(refusals)+len(warnings) > 0 {
				t.Errorf("got %q and %q", refusals, warnings)
			}
		})
	}
}
