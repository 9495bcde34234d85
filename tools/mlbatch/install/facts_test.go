// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

// kueueDeployment returns a Kueue that belongs to the given release.
func kueueDeployment(image string, owner preflight.Owner) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-controller-manager"}}
	if owner.Name != "" {
		d.Annotations = map[string]string{"meta.helm.sh/release-name": owner.Name, "meta.helm.sh/release-namespace": owner.Namespace}
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: image}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kueue-manager-config"}},
	}}}
	return d
}

func TestOperatorsOfOthersAreTold(t *testing.T) {
	ours := preflight.Owner{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}
	elsewhere := preflight.Owner{Name: "mlbatch", Namespace: "queues"}
	asleep := kueueDeployment("", preflight.Owner{Name: "queues", Namespace: "kueue-system"})
	asleep.Spec.Replicas = new(int32)
	oursAsleep := kueueDeployment("", elsewhere)
	oursAsleep.Spec.Replicas = new(int32)
	codeflare := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "redhat-ods-applications", Name: preflight.CodeFlareOperator}}
	got := others([]appsv1.Deployment{
		*kueueDeployment("", ours), *kueueDeployment("", elsewhere), *kueueDeployment("", preflight.Owner{}), *codeflare, *asleep, *oursAsleep,
		{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "volcano-system", Name: "volcano-scheduler"},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "volcano"}}},
		},
	}, ours)
	want := []preflight.Operator{
		{Part: "kueue", Namespace: "kueue-system", Name: "kueue-controller-manager", Account: "default", Owner: elsewhere},
		{Part: "kueue", Namespace: "kueue-system", Name: "kueue-controller-manager", Account: "default"},
		{Namespace: "redhat-ods-applications", Name: preflight.CodeFlareOperator, Account: "default"},
		{Part: "kueue", Namespace: "kueue-system", Name: "kueue-controller-manager", Account: "default", Owner: elsewhere},
		{Namespace: "volcano-system", Name: "volcano-scheduler", Account: "volcano"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const kueueConfiguration = `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
manageJobsWithoutQueueName: true
integrations:
  frameworks: [batch/job]
  externalFrameworks: [AppWrapper.v1beta2.workload.codeflare.dev]
`

func TestTheKueueOfTheClusterIsReadAsFarAsThatIsPossible(t *testing.T) {
	configuration := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-manager-config"},
		Data:       map[string]string{"controller_manager_config.yaml": kueueConfiguration},
	}
	ours := preflight.Owner{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}
	broken := configuration.DeepCopy()
	broken.Data["controller_manager_config.yaml"] = "integrations: [}"
	for name, c := range map[string]struct {
		image   string
		objects []runtime.Object
		want    preflight.Kueue
	}{
		"all of it": {"registry.k8s.io/kueue/kueue:v0.16.1", []runtime.Object{configuration}, preflight.Kueue{
			Served: true, Version: "v0.16.1", Configured: true, ManagesAll: true,
			Frameworks: []string{"batch/job"}, // what is external, Kueue leaves to others
		}},
		"no configuration":          {"registry.k8s.io/kueue/kueue:v0.16.1", nil, preflight.Kueue{Served: true, Version: "v0.16.1"}},
		"a broken configuration":    {"registry.k8s.io/kueue/kueue:v0.16.1", []runtime.Object{broken}, preflight.Kueue{Served: true, Version: "v0.16.1"}},
		"an image of a branch":      {"registry.example/kueue:release-0.19", nil, preflight.Kueue{Served: true}},
		"an image without a number": {"registry.example/kueue:main", nil, preflight.Kueue{Served: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := observeKueue(t.Context(), fakecluster.API(fake.NewClientset(c.objects...)), []appsv1.Deployment{*kueueDeployment("ours:v9.9.9", ours), *kueueDeployment(c.image, preflight.Owner{})}, ours)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestAKueueThatEvictsWhatIsNotReadyIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		configuration string
		arguments     []string
		want          bool
	}{
		"by default":              {"", nil, false},
		"of older releases":       {"waitForPodsReady: {enable: true}", nil, true},
		"of newer releases":       {"waitForPodsReady: {timeout: 5m}", nil, true},
		"disabled":                {"waitForPodsReady: {enable: false}", nil, false},
		"with a gate in the file": {"waitForPodsReady: {timeout: 5m}\nfeatureGates: {DisableWaitForPodsReady: true}", nil, false},
		"with a gate as argument": {"waitForPodsReady: {timeout: 5m}", []string{"--feature-gates=A=false,DisableWaitForPodsReady=true"}, false},
		"with a gate that is off": {"waitForPodsReady: {timeout: 5m}", []string{"--feature-gates=DisableWaitForPodsReady=false"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := kueueDeployment("registry.k8s.io/kueue/kueue:v0.19.2", preflight.Owner{})
			d.Spec.Template.Spec.Containers[0].Args = c.arguments
			configuration := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "kueue-manager-config"},
				Data:       map[string]string{"controller_manager_config.yaml": c.configuration},
			}
			got, err := readKueue(t.Context(), fakecluster.API(fake.NewClientset(configuration)), preflight.Kueue{}, *d)
			if err != nil || got.Evicts != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestKindsThatOurKueueHasLeftAreNoKueue(t *testing.T) {
	ours := preflight.Owner{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}
	for want, owner := range map[bool]string{false: "mlbatch", true: "theirs"} {
		crd := fakecluster.CRDs("kueue.x-k8s.io/ClusterQueue")[0]
		crd.SetAnnotations(map[string]string{"meta.helm.sh/release-name": owner, "meta.helm.sh/release-namespace": helmrelease.DefaultNamespace})
		got, err := observeKueue(t.Context(), fakecluster.API(fake.NewClientset(), crd), []appsv1.Deployment{*kueueDeployment("", ours)}, ours)
		if err != nil || got.Served != want {
			t.Errorf("kinds of the release %s: %+v (%v)", owner, got, err)
		}
	}
}

func TestEachObjectOfAReleaseIsLookedAt(t *testing.T) {
	ours := map[string]string{"meta.helm.sh/release-name": "mlbatch", "meta.helm.sh/release-namespace": helmrelease.DefaultNamespace}
	crd := helmrelease.Object{Unstructured: fakecluster.CRDs("kueue.x-k8s.io/Cohort")[0], Part: "kueue"}
	versions := func(o *unstructured.Unstructured, names ...any) {
		var all []any
		for _, n := range names {
			all = append(all, map[string]any{"name": n})
		}
		_ = unstructured.SetNestedSlice(o.Object, all, "spec", "versions")
	}
	versions(crd.Unstructured, "v1beta1", "v1beta2")
	there := crd.DeepCopy()
	there.SetAnnotations(ours)
	_ = unstructured.SetNestedStringSlice(there.Object, []string{"v1alpha1", "v1beta1"}, "status", "storedVersions")
	theirs := kueueDeployment("", preflight.Owner{})
	theirs.Namespace = helmrelease.DefaultNamespace
	theirs.DeletionTimestamp, theirs.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"foregroundDeletion"}

	d := &delivery{Release: helmrelease.Release{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}, objects: []helmrelease.Object{crd, {Unstructured: fakecluster.KueueDeployment(helmrelease.DefaultNamespace)}}}
	d.objects[1].Part = "kueue"
	d.objects[1].SetNamespace("") // charts may leave it out
	if err := d.observe(t.Context(), fakecluster.API(fake.NewClientset(), there, theirs)); err != nil {
		t.Fatal(err)
	}
	leaving := []preflight.Object{{Kind: "Deployment", Name: "kueue-controller-manager", Part: "kueue"}}
	want := seen{
		taken: leaving, leaving: leaving,
		stored: []preflight.Object{{Kind: helmrelease.CustomResourceDefinition, Name: "cohorts.kueue.x-k8s.io", Part: "kueue", Owner: preflight.Owner{Name: "mlbatch", Namespace: helmrelease.DefaultNamespace}, Versions: []string{"v1alpha1"}}},
	}
	if diff := cmp.Diff(want, d.seen, cmp.AllowUnexported(seen{})); diff != "" {
		t.Error(diff)
	}
	gone := &delivery{Release: d.Release, objects: []helmrelease.Object{{Unstructured: fakecluster.KueueDeployment(helmrelease.DefaultNamespace)}}}
	if err := gone.observe(t.Context(), fakecluster.API(fake.NewClientset())); err != nil || !gone.seen.missing {
		t.Errorf("an object that is not there is not missed: %+v (%v)", gone.seen, err)
	}
}

func TestAPriorityClassWithAnotherValueCannotBecomeOurs(t *testing.T) {
	class := func(value any, policy string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "PriorityClass", "metadata": map[string]any{"name": "high-priority"}, "value": value, "preemptionPolicy": policy,
		}}
	}
	wanted := class(10.0, "PreemptLowerPriority")
	for name, c := range map[string]struct {
		there *unstructured.Unstructured
		want  bool
	}{
		"it is not there":       {&unstructured.Unstructured{}, false},
		"it is the same":        {class(int64(10), "PreemptLowerPriority"), false},
		"it has another value":  {class(int64(1000), "PreemptLowerPriority"), true},
		"it has another policy": {class(int64(10), "Never"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fixed(c.there, wanted); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
