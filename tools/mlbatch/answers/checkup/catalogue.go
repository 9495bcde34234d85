// SPDX-License-Identifier: Apache-2.0

package checkup

// Code names a finding. It does not change between releases.
type Code string

// Entry is a finding that the package knows.
type Entry struct {
	Code     Code
	Severity Severity
	// Means is what is wrong, Next what to do.
	Means, Next string
	// Needs are the kinds without which nothing can be said. A check looks at no others.
	Needs []Kind
	look  func(Objects) []sight
}

// Catalogue has all findings, in the order in which they are looked for: what explains others
// comes first.
var Catalogue = []Entry{
	{"InstallRefused", Error, "'mlbatch install' would refuse this cluster", "do what the message says", nil, Objects.refused},
	{"InstallUnusual", Warning, "'mlbatch install' would warn", "do what the message says, unless it is meant to be so", nil, Objects.unusual},
	{"PlatformMissing", Warning, "the cluster does not have the platform", "install it with 'mlbatch install' (docs/install.md)", []Kind{Deployments}, Objects.platformMissing},
	{"ComponentMissing", Error, "the platform is incomplete: nothing starts without this part", "see 'mlbatch components', and run 'mlbatch upgrade'", []Kind{Deployments}, Objects.componentMissing},
	{"ComponentNotReady", Error, "not all pods of a part are ready", "look at its pods with kubectl describe", []Kind{Deployments}, Objects.componentNotReady},
	{"ComponentVersion", Warning, "a part has another version than the one that this release is tested with", "use the mlbatch command of the release, or run 'mlbatch upgrade'", []Kind{Deployments}, Objects.componentVersion},
	{"DefinitionVersion", Error, "the cluster does not serve the version of a kind that the platform uses", "upgrade the part that defines the kind", []Kind{Definitions}, Objects.definitionVersion},
	{"OperatorMissing", Warning, "the cluster has a kind, but its operator does not run", "enable the part, or remove the definition if nobody uses the kind", []Kind{Deployments, Definitions}, Objects.operatorMissing},
	{"TwoOperators", Error, "two installations of a part run, and work on the same objects", "remove one of them, or scale it to 0", []Kind{Deployments}, Objects.twoOperators},
	{"CodeFlareOperator", Warning, "the CodeFlare operator runs beside our AppWrapper controller, and has one inside", "switch its AppWrapper controller off (docs/takeover.md)", []Kind{Deployments}, Objects.codeFlareOperator},
	{"TwoGangSchedulers", Warning, "another gang scheduler runs beside the Coscheduler: both may place pods on the same devices", "keep their nodes apart, or remove one of them", []Kind{Deployments}, Objects.twoSchedulers},
	{"WorkWithoutQueueRuns", Warning, "work that names no queue runs without quota", "set manageJobsWithoutQueueName and managedJobsNamespaceSelector of Kueue as docs/install.md says", []Kind{Deployments, ConfigMaps}, Objects.workWithoutQueueRuns},
	{"IntegrationMissing", Error, "Kueue does not queue a kind whose operator runs", "add it to integrations.frameworks of Kueue's configuration", []Kind{Deployments, ConfigMaps}, Objects.integrationMissing},
	{"TwoRecoveries", Error, "Kueue evicts work whose pods are not ready, and the AppWrapper controller starts it again: they disturb each other", "set the feature gate DisableWaitForPodsReady=true, or remove waitForPodsReady", []Kind{Deployments, ConfigMaps}, Objects.twoRecoveries},
	{"TwoQuotaKeepers", Error, "Kueue changes quota by itself, and so does the slack queue", "disable the feature gate DynamicQuotaOrchestration, or delete the slack queue", []Kind{Deployments, ConfigMaps, ClusterQueues}, Objects.twoQuotaKeepers},
	{"SlackQueueUnkept", Warning, "a slack queue that the AppWrapper controller's configuration names does not exist or has no cohort to lend to, or the file of the teams has one that the configuration does not name", "name it in slackQueues of the teams and in slackQueueNames of the controller, or in neither (docs/slack-queue.md)", []Kind{Deployments, ConfigMaps, ClusterQueues}, Objects.slackQueueUnkept},
	{"ClusterQueueInactive", Error, "a ClusterQueue admits nothing", "do what the message says: a flavor or an admission check may be missing", []Kind{ClusterQueues}, Objects.clusterQueueInactive},
	{"QueueStopped", Warning, "a queue is stopped, and work waits in it", "set its stopPolicy to None", []Kind{ClusterQueues, LocalQueues}, Objects.queueStopped},
	{"ClusterQueueUnused", Note, "no LocalQueue uses a ClusterQueue, so nobody can submit to it", "add a LocalQueue, or delete it", []Kind{Deployments, ConfigMaps, ClusterQueues, LocalQueues}, Objects.clusterQueueUnused},
	{"ClusterQueueMissing", Error, "the ClusterQueue of a LocalQueue does not exist", "create it, or delete the LocalQueue", []Kind{ClusterQueues, LocalQueues}, Objects.clusterQueueMissing},
	{"LocalQueueInactive", Error, "a LocalQueue is not active, although its ClusterQueue is", "do what the message says", []Kind{ClusterQueues, LocalQueues}, Objects.localQueueInactive},
	{"NamespaceUnlabelled", Warning, "a namespace has a queue, but not the label of teams: the platform's rules do not apply there", "add the namespace to the teams file, or set the label mlbatch-team-namespace=true", []Kind{Namespaces, LocalQueues}, Objects.namespaceUnlabelled},
	{"TolerationsUnlisted", Note, "a team's namespace does not list what its pods may tolerate, so they may tolerate taints by which nodes are kept for others", "annotate the namespace with mlbatch-tolerations (docs/teams.md)", []Kind{Namespaces, LocalQueues, ClusterQueues, Flavors}, Objects.tolerationsUnlisted},
	{"FlavorWithoutNodes", Warning, "there is quota in a flavor that no node fits", "correct nodeLabels of the flavor, label nodes, or remove the quota, unless an autoscaler adds nodes", []Kind{Nodes, ClusterQueues, Cohorts, Flavors}, Objects.flavorWithoutNodes},
	{"FlavorsOverlap", Warning, "nodes belong to two flavors that have quota of the same resource: they are promised twice", "give each flavor labels that no node of another one has", []Kind{Nodes, ClusterQueues, Cohorts, Flavors}, Objects.flavorsOverlap},
	{"QuotaBeyondNodes", Warning, "the quota of a flavor is more than all its nodes have", "lower the quota, or add nodes, unless an autoscaler does", []Kind{Nodes, ClusterQueues, Cohorts, Flavors}, Objects.quotaBeyondNodes},
	{"QuotaBeyondUsable", Warning, "the quota of a flavor, without what slack queues do not lend, is more than what its nodes can give to queued work now", "repair or uncordon nodes, move work outside the queues, or lower the quota", []Kind{Nodes, Pods, ClusterQueues, Cohorts, Flavors, Deployments, ConfigMaps}, Objects.quotaBeyondUsable},
	{"WorkOutsideQueues", Warning, "pods that are in no queue use devices for which there is quota", "submit them to a queue, or keep their nodes out of the flavors", []Kind{Nodes, Pods, ClusterQueues, Cohorts, Flavors}, Objects.workOutsideQueues},
	{"NodeNotReady", Warning, "a node with quota is not ready", "look at its conditions with kubectl describe node", []Kind{Nodes, ClusterQueues, Cohorts, Flavors}, Objects.nodeNotReady},
	{"NodeUnhealthy", Warning, "pods of AppWrappers leave a node, because its signs say that it is unhealthy", "repair it, and remove the sign", []Kind{Nodes, Deployments, ConfigMaps}, Objects.nodeUnhealthy},
	{"NodeSuspect", Warning, "several AppWrappers blame a node that looks healthy", "drain and test it", []Kind{AppWrappers, Deployments, ConfigMaps}, Objects.nodeSuspect},
	{"NodeCordoned", Note, "a node with quota is cordoned", "uncordon it when it is repaired", []Kind{Nodes, ClusterQueues, Cohorts, Flavors}, Objects.nodeCordoned},
	{"DevicesMissing", Warning, "fewer devices of a node can be used than it has", "look at its device plugin, and repair the devices", []Kind{Nodes}, Objects.devicesMissing},
	{"DevicesStranded", Note, "devices are free on partly used nodes, and together they would be a whole node", "large work waits for a whole node: let small work be packed, or wait until it ends", []Kind{Nodes, Pods, Deployments, ConfigMaps}, Objects.devicesStranded},
	{"PodsCreatedSlowly", Note, "the pods of the largest AppWrapper, or of all that start now, take more than 10 seconds to be created, because kube-controller-manager sends few requests a second", "raise its flags --kube-api-qps and --kube-api-burst, as to 100 and 200", []Kind{Pods, AppWrappers}, Objects.podsCreatedSlowly},
	{"AppWrapperDeleting", Warning, "an AppWrapper was deleted more than 15 minutes ago, and finalizers keep it", "see 'mlbatch why': is the owner of the finalizers running?", []Kind{AppWrappers}, Objects.appWrapperDeleting},
	{"SuspendedWithQuota", Warning, "an AppWrapper is suspended, but Kueue has admitted it for more than 5 minutes: its quota is unused", "see 'mlbatch why': do Kueue and the AppWrapper controller run?", []Kind{AppWrappers, Workloads}, Objects.suspendedWithQuota},
}
