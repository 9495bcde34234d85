// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// attacks are all that succeed without the defences. refused_test.go has the others.
var attacks = slices.Concat(spoofs, growths, escapes, ranks, placements, exposures)

const controllersOnly = "only controllers may create objects that another object controls"

// spoofs use the quota of other work.
var spoofs = []attack{
	{
		name: "an AppWrapper that names another one as its owner", answer: controllersOnly, victims: []victim{door},
		try: func(s *story, ctx context.Context) error {
			return s.belongs(ctx, wrapped("second", job("second", "50m", "linger", "0s"), nil))
		},
		won:   hasPods(workload.AppWrapperLabel+"=second", 1),
		found: found{"over-reservation", "AppWrapper door", "second-"},
	},
	{
		name: "a PyTorchJob that names an AppWrapper as its owner", answer: controllersOnly, victims: []victim{door},
		try:   func(s *story, ctx context.Context) error { return s.spoof(ctx, "pytorchjob") },
		won:   hasPods("training.kubeflow.org/job-name=pytorchjob", 2),
		found: found{"over-reservation", "AppWrapper door", "pytorchjob-master-0"},
	},
	{
		name: "a RayCluster that names an AppWrapper as its owner", answer: controllersOnly, victims: []victim{door},
		try:   func(s *story, ctx context.Context) error { return s.spoof(ctx, "raycluster") },
		won:   hasPods("ray.io/cluster=raycluster", 3),
		found: found{"over-reservation", "AppWrapper door", "raycluster-"},
	},
	{
		name: "a RayJob that names an AppWrapper as its owner", answer: controllersOnly, victims: []victim{door},
		try: func(s *story, ctx context.Context) error { return s.spoof(ctx, "rayjob") },
		won: func(s *story, ctx context.Context) (string, error) {
			cluster, err := s.clusterOf(ctx, rayWork{name: "rayjob"})
			if err != nil {
				return "", err
			}
			return s.podsOf(ctx, "ray.io/cluster="+cluster.Name, 1)
		},
		found: found{"over-reservation", "AppWrapper door", "rayjob-"},
	},
	{
		name:    "pods that count as those of an AppWrapper",
		answer:  "only controllers may write the label workload.codeflare.dev/appwrapper into a pod template",
		victims: []victim{counted},
		try:     func(s *story, ctx context.Context) error { return s.sends(ctx, s.posing()) },
		won:     (*story).countedIsReset,
		found:   found{"mislabelled", "Pod posing-", "AppWrapper counted"},
	},
}

// growths make operators create pods that Kueue has not counted.
var growths = []attack{
	{
		name:    "a PyTorchJob of an AppWrapper that gets more workers",
		answer:  "it belongs to AppWrapper grown, which got quota for its spec as it is",
		victims: []victim{wrapper("grown", 2, hostile("pytorchjob"))},
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "kubeflow.org/v1", "PyTorchJob", "grown", `{"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":3}}}}`)
		},
		won:   hasPods("training.kubeflow.org/job-name=grown", 4),
		found: found{"over-reservation", "AppWrapper grown", "grown-worker-2"},
	},
	{
		name:    "a RayCluster of an AppWrapper that gets more workers",
		answer:  "it belongs to AppWrapper swollen, which got quota for its spec as it is",
		victims: []victim{wrapper("swollen", 3, hostile("raycluster"))},
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "ray.io/v1", "RayCluster", "swollen", `[
				{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":2},
				{"op":"replace","path":"/spec/workerGroupSpecs/0/maxReplicas","value":2}
			]`)
		},
		won:   hasPods("ray.io/cluster=swollen", 4),
		found: found{"over-reservation", "AppWrapper swollen", ""},
	},
	{
		name:    "a RayService of an AppWrapper that gets a second cluster",
		answer:  "it belongs to RayService upgraded: only controllers may change its labels and annotations",
		victims: []victim{wrapper("upgraded", 2, ofKind("rayservice"))},
		try:     (*story).upgrade,
		won:     hasPods(workload.AppWrapperLabel+"=upgraded", 4),
		found:   found{"over-reservation", "AppWrapper upgraded", ""},
	},
	{
		name:    "a Deployment of an AppWrapper that somebody with the role edit scales",
		answer:  "only controllers may scale work",
		victims: []victim{wrapper("scaled", 2, ofKind("deployment"))},
		try:     func(s *story, ctx context.Context) error { return s.scale(ctx, "scaled", 4) },
		won:     hasPods(workload.AppWrapperLabel+"=scaled", 4),
		found:   found{"over-reservation", "AppWrapper scaled", ""},
	},
	{
		name:   "a PyTorchJob of an AppWrapper that grows by itself",
		answer: "elasticPolicy",
		try: func(s *story, ctx context.Context) error {
			elastic := map[string]any{"minReplicas": int64(3), "maxReplicas": int64(3), "metrics": []any{}}
			return s.wraps(ctx, with(s.hostile("pytorchjob", "elastic"), elastic, "spec", "elasticPolicy"))
		},
		won:   hasPods(workload.AppWrapperLabel+"=elastic", 4),
		found: found{"over-reservation", "AppWrapper elastic", ""},
	},
	{
		name:   "a RayCluster that starts with more workers than it counts",
		answer: "cannot have more minReplicas than replicas",
		try:    (*story).startsLarger,
		won:    hasPods("ray.io/cluster=larger", 3),
		found:  found{"over-reservation", "RayCluster larger", ""},
	},
	{
		name:   "a RayCluster of an AppWrapper in a version whose pods nobody counts",
		answer: "template.apiVersion",
		try:    (*story).wrapsOlder,
		won:    hasPods("ray.io/cluster=older", 2),
		found:  found{"over-reservation", "AppWrapper older", ""},
	},
}

// escapes run on after Kueue has released their quota, or keep quota that nothing uses.
var escapes = []attack{
	{
		name:    "a Job that is left behind by its AppWrapper",
		answer:  "only controllers may remove the finalizer workload.codeflare.dev/finalizer",
		victims: []victim{wrapper("left", 1, lingers)},
		try: func(s *story, ctx context.Context) error {
			if err := s.patch(ctx, ofAppWrappers, "AppWrapper", "left", `{"metadata":{"finalizers":null}}`); err != nil {
				return err
			}
			return s.orphan(ctx, "left")
		},
		won:   func(s *story, ctx context.Context) (string, error) { return s.outlived(ctx, "left") },
		found: found{"no-quota", "Job left", ""},
	},
	{
		name:    "a PyTorchJob that is deleted without its pods",
		answer:  "can be deleted in the background only",
		victims: []victim{bare},
		try: func(s *story, ctx context.Context) error {
			return s.user.Delete(ctx, s.unwrapped("pytorchjob", "bare"), client.PropagationPolicy(metav1.DeletePropagationOrphan))
		},
		won:   (*story).bareOutlived,
		found: found{"no-quota", "Pod bare-", ""},
	},
	{
		// The operator looks away, and so does Kueue, which counts again and stops what nobody can stop.
		name:    "a PyTorchJob that is handed to nobody",
		answer:  "only suspend of its spec can be changed",
		victims: []victim{unwrapped("unmanaged")},
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "kubeflow.org/v1", "PyTorchJob", "unmanaged",
				`{"spec":{"runPolicy":{"managedBy":"kueue.x-k8s.io/multikueue"},"pytorchReplicaSpecs":{"Worker":{"replicas":100000}}}}`)
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.runsWithoutQuota(ctx, "training.kubeflow.org/job-name=unmanaged", 2)
		},
		found: found{"no-quota", "PyTorchJob unmanaged", ""},
	},
	{
		// Neither the operator nor Kueue looks at it again.
		name:    "a PyTorchJob that is deleted, and that a finalizer keeps",
		answer:  "remove example.com/keep from metadata.finalizers",
		victims: []victim{unwrapped("undead")},
		try:     (*story).deletesAndKeeps,
		won:     (*story).undeadRuns,
	},
	{
		name:   "a PyTorchJob that ends before its workers",
		answer: "needs spec.runPolicy.cleanPodPolicy Running or All",
		try:    (*story).leavesWorkers,
		won: func(s *story, ctx context.Context) (string, error) {
			return s.runsWithoutQuota(ctx, "training.kubeflow.org/job-name=leaving", 1)
		},
		found: found{"no-quota", "PyTorchJob leaving", "has released its quota"},
	},
	{
		name:    "a RayJob that KubeRay gives up",
		answer:  "only suspend of its spec can be changed",
		victims: []victim{rayVictim(abandonedJob)},
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "ray.io/v1", "RayJob", abandonedJob.name, `{"spec":{"activeDeadlineSeconds":-1}}`)
		},
		won:   func(s *story, ctx context.Context) (string, error) { return s.rayOutlived(ctx, abandonedJob) },
		found: found{"no-quota", "RayJob " + abandonedJob.name, "has no quota"},
	},
	{
		name:    "a RayCluster that KubeRay gives up",
		answer:  "only suspend of its spec can be changed",
		victims: []victim{rayVictim(abandonedCluster)},
		// Kueue stops work whose number of pods changes. KubeRay does nothing more for invalid work.
		try: func(s *story, ctx context.Context) error {
			return s.patch(ctx, "ray.io/v1", "RayCluster", abandonedCluster.name, `[
				{"op":"add","path":"/spec/headGroupSpec/rayStartParams","value":{"labels":"a=b"}},
				{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":0},
				{"op":"replace","path":"/spec/workerGroupSpecs/0/minReplicas","value":0}
			]`)
		},
		won:   func(s *story, ctx context.Context) (string, error) { return s.rayOutlived(ctx, abandonedCluster) },
		found: found{"no-quota", "RayCluster " + abandonedCluster.name, ""},
	},
	{
		name:   "a RayCluster that KubeRay gives up for a label",
		answer: "leave ray.io/originated-from-crd as it is",
		victims: []victim{rayVictim(disownedCluster, func(cluster *unstructured.Unstructured) {
			with(cluster, map[string]any{"type": "None"}, "spec", "upgradeStrategy")
		})},
		try:   (*story).disowns,
		won:   func(s *story, ctx context.Context) (string, error) { return s.rayOutlived(ctx, disownedCluster) },
		found: found{"no-quota", "RayCluster " + disownedCluster.name, ""},
	},
	{
		name:   "a RayJob whose submitter keeps its GPUs",
		answer: "can request cpu, memory and ephemeral-storage only",
		try:    (*story).submitsWithGPUs,
		won: func(s *story, ctx context.Context) (string, error) {
			return s.runsWithoutQuota(ctx, "e2e=submitter", 1)
		},
		found: found{"no-quota", "RayJob submitting", ""},
	},
	{
		name:   "a ConfigMap of an AppWrapper that keeps its quota",
		answer: "metadata.finalizers",
		try:    (*story).keepsQuota,
		won:    (*story).quotaIsKept,
		found:  found{"idle-quota", "AppWrapper keeping", ""},
	},
	{
		name: "an AppWrapper that is handed over while it is deleted", answer: "it is being deleted", dies: true,
		victims: []victim{handed},
		try: func(s *story, ctx context.Context) error {
			return s.changesWhileDeleted(ctx, "handed", `{"spec":{"managedBy":"example.com/nobody"}}`)
		},
		won: func(s *story, ctx context.Context) (string, error) { return s.staysForever(ctx, "handed") },
	},
}

// ranks go before the work of others, or take their nodes.
var ranks = []attack{
	{
		name:    "a pod that evicts those of others",
		answer:  "may not have the priorityClassName system-node-critical",
		prepare: (*story).bystander,
		try: func(s *story, ctx context.Context) error {
			return s.runsPod(ctx, "critical", func(p *corev1.PodSpec) {
				p.PriorityClassName = "system-node-critical"
				takeNode(p, here.Simulated[0])
			})
		},
		won:   (*story).bystanderIsEvicted,
		found: found{"system-priority", "Pod critical", ""},
	},
	{
		name:   "a PyTorchJob that goes before all other work",
		answer: "may not have the priority class system-node-critical",
		try: func(s *story, ctx context.Context) error {
			job := s.unwrapped("pytorchjob", "first")
			return s.sends(ctx, with(job, "system-node-critical", "spec", "runPolicy", "schedulingPolicy", "priorityClass"))
		},
		won:   hasPods("training.kubeflow.org/job-name=first", 2),
		found: found{"system-priority", "PyTorchJob first", "before all other work"},
	},
}

// placements get rights on a node, or a node that is not of their flavor.
var placements = []attack{
	{
		name:   "a container with all rights on its node",
		answer: "the namespace enforces the Pod Security level baseline",
		try: func(s *story, ctx context.Context) error {
			return s.runsPod(ctx, "root", func(p *corev1.PodSpec) {
				p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			})
		},
		won:   hasPods(workload.AppWrapperLabel+"=root", 1),
		found: found{"node-access", "Pod root", ""},
	},
	roots("privileged", "may not be privileged", "the privileged container pytorch", func(p *corev1.PodSpec) {
		p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	}),
	roots("host-pid", "hostPID", "hostPID", func(p *corev1.PodSpec) { p.HostPID = true }),
	roots("host-network", "hostNetwork", "hostNetwork", func(p *corev1.PodSpec) { p.HostNetwork = true }),
	roots("host-path", "may mount no files of the node", "the folder / of its node", func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		p.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "node", MountPath: "/node"}}
	}),
	{
		name:   "a PyTorchJob on a node that it chooses",
		answer: "may not name their node",
		try: func(s *story, ctx context.Context) error {
			return s.sends(ctx, s.pyTorchJob("elsewhere", func(p *corev1.PodSpec) { p.NodeName = here.Simulated[1] }))
		},
		won:   hasPods("training.kubeflow.org/job-name=elsewhere", 1),
		found: found{"misplaced", "PyTorchJob elsewhere", ""},
	},
	{
		name:   "a pod of an AppWrapper on a node that it chooses",
		answer: "may not name their node",
		try: func(s *story, ctx context.Context) error {
			return s.runsPod(ctx, "chooses", func(p *corev1.PodSpec) { p.NodeName = here.Simulated[1] })
		},
		won:   hasPods(workload.AppWrapperLabel+"=chooses", 1),
		found: found{"misplaced", "AppWrapper chooses", ""},
	},
	{
		name:    "a PyTorchJob on a node that a taint keeps for another team",
		answer:  "this team's pods may not tolerate example.com/reserved-for: remove it",
		prepare: func(s *story, ctx context.Context) { s.reserve(ctx, here.Simulated[3], "example.com/reserved-for") },
		try: func(s *story, ctx context.Context) error {
			return s.sends(ctx, s.pyTorchJob("intruding", func(p *corev1.PodSpec) { intrude(p, here.Simulated[3]) }))
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.runsOn(ctx, "training.kubeflow.org/job-name=intruding", here.Simulated[3])
		},
		found: found{"misplaced", "Pod intruding-", "example.com/reserved-for"},
	},
	{
		name:    "a pod of an AppWrapper on such a node",
		answer:  "this team's pods may not tolerate example.com/reserved-for: remove it",
		prepare: func(s *story, ctx context.Context) { s.reserve(ctx, here.Simulated[4], "example.com/reserved-for") },
		try: func(s *story, ctx context.Context) error {
			return s.runsPod(ctx, "intrudes", func(p *corev1.PodSpec) { intrude(p, here.Simulated[4]) })
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.runsOn(ctx, workload.AppWrapperLabel+"=intrudes", here.Simulated[4])
		},
		found: found{"misplaced", "Pod intrudes", "example.com/reserved-for"},
	},
	{
		name:   "a PyTorchJob that keeps the pods of other teams from all nodes",
		answer: "may keep away from pods of their own namespace only",
		try: func(s *story, ctx context.Context) error {
			return s.sends(ctx, s.pyTorchJob("repelling", repel))
		},
		won:   hasPods("training.kubeflow.org/job-name=repelling", 1),
		found: found{"misplaced", "Pod repelling-", "keeps pods of other namespaces"},
	},
	{
		name:   "a pod of an AppWrapper that does",
		answer: "may keep away from pods of their own namespace only",
		try: func(s *story, ctx context.Context) error {
			return s.runsPod(ctx, "repels", repel)
		},
		won:   hasPods(workload.AppWrapperLabel+"=repels", 1),
		found: found{"misplaced", "Pod repels", "keeps pods of other namespaces"},
	},
	{
		name:   "a PyTorchJob on a control plane",
		answer: "may not tolerate every taint",
		prepare: func(s *story, ctx context.Context) {
			s.reserve(ctx, here.Simulated[2], "node-role.kubernetes.io/control-plane")
		},
		try: func(s *story, ctx context.Context) error {
			return s.sends(ctx, s.pyTorchJob("tolerant", func(p *corev1.PodSpec) {
				p.NodeSelector = map[string]string{corev1.LabelHostname: here.Simulated[2]}
				p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}))
		},
		won: func(s *story, ctx context.Context) (string, error) {
			return s.runsOn(ctx, "training.kubeflow.org/job-name=tolerant", here.Simulated[2])
		},
		found: found{"misplaced", "Pod tolerant-", "node-role.kubernetes.io/control-plane"},
	},
	{
		name:    "a pod that somebody with the role edit makes tolerate every taint",
		answer:  "it belongs to Job tolerating|may not tolerate every taint",
		victims: []victim{wrapper("tolerating", 1, lingers)},
		try:     (*story).toleratesMore,
		won:     (*story).toleratesAll,
	},
}

// exposures open a door to the outside.
var exposures = []attack{
	opens("a port on every node", "node-port", "cannot have the type LoadBalancer or NodePort", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}),
	opens("a load balancer", "load-balancer", "cannot have the type LoadBalancer or NodePort", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}),
	opens("an address of others", "address", "cannot have externalIPs", corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}}),
	{
		name:   "a Service of an AppWrapper that is a port on every node",
		answer: "cannot have the type LoadBalancer or NodePort",
		try:    (*story).wrapsAnOpenService,
		won: func(s *story, ctx context.Context) (string, error) {
			return "", s.admin.Get(ctx, "wrapped-port", s.namespace, &corev1.Service{})
		},
		found: found{"open-port", "Service wrapped-port", ""},
	},
	{
		name:   "a dashboard of Ray that is open to the outside",
		answer: "cannot have enableIngress",
		try: func(s *story, ctx context.Context) error {
			return s.sends(ctx, with(s.unwrapped("raycluster", "shown"), true, "spec", "headGroupSpec", "enableIngress"))
		},
		won: func(s *story, ctx context.Context) (string, error) {
			ingresses := &networkingv1.IngressList{}
			err := s.admin.List(ctx, ingresses)
			if len(ingresses.Items) == 0 {
				return "there is no Ingress", err
			}
			return "", err
		},
		found: found{"open-port", "Ingress shown-", ""},
	},
	{
		name:   "a token that never expires",
		answer: "whose token never expires",
		try: func(s *story, ctx context.Context) error {
			return s.sends(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: s.namespace, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			})
		},
		won: func(s *story, ctx context.Context) (string, error) {
			secret := &corev1.Secret{}
			err := s.admin.Get(ctx, "token", s.namespace, secret)
			if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
				return "the Secret has no token", err
			}
			return "", err
		},
	},
}
