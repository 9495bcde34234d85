// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// placement are scenes in which work has quota, and finds no place.
var placement = map[explain.Code]scene{
	"NodesFull":        {set: func(p *place) { p.much("full"); p.runs("first", cpu("40")); p.submit("train", cpu("40")) }},
	"PodNotScheduled":  {member: true, set: func(p *place) { p.much("large"); p.submit("train", cpu("70")) }},
	"NodesTooSmall":    {set: func(p *place) { p.much("large"); p.submit("train", cpu("70")) }},
	"QuotaBeyondNodes": {set: func(p *place) { p.much("beyond"); p.runs("first", cpu("40")); p.submit("train", cpu("40")) }},
	"NodesFragmented": {set: func(p *place) {
		p.much("pieces")
		p.runs("first", cpu("40"), pods(2))
		p.submit("train", cpu("40"))
	}},
	"NodesNotSelected": {set: func(p *place) { p.queue(); p.submit("train", onlyIn("nobody"), everywhere) }},
	"NoNodeAllowed":    {set: func(p *place) { p.queue(); p.submit("train", onlyIn("nobody")) }},
	"PodAffinityUnmet": {set: func(p *place) {
		p.queue()
		p.submit("train", everywhere, inPod(func(spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nobody"}}, TopologyKey: corev1.LabelHostname},
			}}}
		}))
	}},
	"SchedulingGated": {set: func(p *place) {
		p.queue()
		p.submit("train", inPod(func(spec *corev1.PodSpec) {
			spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
		}))
	}},
	"SchedulerSilent": {later: later, set: func(p *place) { p.queue(); p.submit("train", scheduledBy("nobody")) }},
	"TwoSchedulers": {later: later, set: func(p *place) {
		second := newJob("other")
		second.Spec.Template.Spec.SchedulerName = corev1.DefaultSchedulerName
		p.queue()
		p.submit("train", onlyIn("nobody"), and(second))
	}},
	"GangNotScheduled": {set: func(p *place) {
		p.much("racks")
		p.submit("train", cpu("40"), pods(3), gang("train"), and(podGroup("train", 3)))
	}},
	"GangIncomplete":     {set: func(p *place) { p.queue(); p.submit("train", gang("train"), and(podGroup("train", 2))) }},
	"PodGroupMissing":    {set: func(p *place) { p.queue(); p.submit("train", gang("nothing")) }},
	"VolumeClaimMissing": {set: func(p *place) { p.queue(); p.submit("train", mounting("nothing")) }},
	"VolumeNotBound": {set: func(p *place) {
		p.claim("nothing", corev1.ReadWriteOnce)
		p.queue()
		p.submit("train", mounting("data"))
	}},
	"VolumeElsewhere": {set: func(p *place) {
		p.volume(corev1.ReadWriteOnce, "nobody")
		p.queue()
		p.submit("train", mounting("data"), everywhere)
	}},
	"VolumeInUse": {set: func(p *place) {
		p.volume(corev1.ReadWriteOncePod, "")
		p.queue()
		p.runs("first", mounting("data"))
		p.submit("train", mounting("data"))
	}},
	"WaitsForPreemption": {set: func(p *place) {
		p.much("preempting")
		p.runs("first", cpu("40"), unwilling)
		p.submit("train", cpu("40"), inPod(func(spec *corev1.PodSpec) { spec.PriorityClassName = urgent }))
	}},
	"PodPreempted": {set: func(p *place) {
		p.much("preempted")
		p.runs("train", cpu("40"), unwilling)
		p.submit("second", cpu("40"), inPod(func(spec *corev1.PodSpec) { spec.PriorityClassName = urgent }))
	}},
}

// much gives the queue more of the nodes of a pool than there is.
func (p *place) much(name string) {
	p.Helper()
	p.flavorOf(name, nil)
	p.queue(ofFlavor(p.namespace, "200"))
}

// everywhere lets pods run on the nodes of the platform and of all pools, too, however full they are.
func everywhere(w *work) {
	inPod(func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources = corev1.ResourceRequirements{}
		for _, key := range []string{"localcluster.mlbatch.dev/platform", pool} {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
	})(w)
}

func scheduledBy(name string) func(*work) {
	return inPod(func(spec *corev1.PodSpec) { spec.SchedulerName = name })
}

// gang puts the pods into a PodGroup.
func gang(name string) func(*work) {
	return inJob(func(j *batchv1.Job) {
		metav1.SetMetaDataLabel(&j.Spec.Template.ObjectMeta, podgroup.PodGroupLabel, name)
	})
}

func podGroup(name string, members int32) *podgroup.PodGroup {
	return &podgroup.PodGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: podgroup.SchemeGroupVersion.String(), Kind: "PodGroup"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: podgroup.PodGroupSpec{MinMember: members},
	}
}

// mounting lets the pods use a claim.
func mounting(claim string) func(*work) {
	return inPod(func(spec *corev1.PodSpec) {
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
		spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
	})
}

// claim makes the claim data.
func (p *place) claim(class string, mode corev1.PersistentVolumeAccessMode) {
	p.Helper()
	p.create(&corev1.PersistentVolumeClaim{ObjectMeta: p.named("data"), Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}})
}

// volume makes the claim data, and a volume for it, which may be on one node only.
func (p *place) volume(mode corev1.PersistentVolumeAccessMode, node string) {
	p.Helper()
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: p.namespace, AccessModes: []corev1.PersistentVolumeAccessMode{mode}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: p.namespace}},
	}}
	if node != "" {
		is := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{is}}}}}
	}
	p.create(v)
	p.claim(p.namespace, mode)
	p.until(func() error {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: p.named("data")}
		if err := p.admin.Get(p.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if c.Status.Phase != corev1.ClaimBound {
			return errors.New("the claim is " + string(c.Status.Phase))
		}
		return nil
	})
}
