// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

func deployment(status appsv1.DeploymentStatus) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: helmrelease.DefaultNamespace, Name: "kueue-controller-manager", Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kueue"}}},
		Status:     status,
	}
}

// wanted returns a Deployment as it is in a manifest.
func wanted() []helmrelease.Object {
	return []helmrelease.Object{{Unstructured: fakecluster.KueueDeployment(helmrelease.DefaultNamespace)}}
}

func TestWhatADeploymentIsWaitedFor(t *testing.T) {
	complete := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	change := func(f func(*appsv1.DeploymentStatus)) *appsv1.Deployment {
		status := complete
		f(&status)
		return deployment(status)
	}
	waiting := pod("kueue-1", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
	}}})
	homeless := pod("kueue-2", corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available",
	}}})
	for name, c := range map[string]struct {
		deployment *appsv1.Deployment
		pod        *corev1.Pod
		want       string
	}{
		"all is well":                      {change(func(*appsv1.DeploymentStatus) {}), nil, ""},
		"nobody has looked at it yet":      {change(func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 }), nil, "kueue-controller-manager: 2 of 2 pods ready"},
		"one pod is not ready":             {change(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 1 }), nil, "kueue-controller-manager: 1 of 2 pods ready"},
		"an old pod is ready, no new one":  {change(func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas, s.AvailableReplicas = 1, 1 }), nil, "kueue-controller-manager: 0 of 2 pods ready"},
		"there are both, and one is to go": {change(func(s *appsv1.DeploymentStatus) { s.Replicas, s.AvailableReplicas = 3, 3 }), nil, ""},
		"its pods are refused": {change(func(s *appsv1.DeploymentStatus) {
			s.AvailableReplicas, s.Conditions = 1, []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "pods are forbidden: insufficient quota",
			}}
		}), nil, "kueue-controller-manager: 1 of 2 pods ready, its pods are refused: pods are forbidden: insufficient quota"},
		"an image cannot be pulled": {change(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 1 }), waiting, "kueue-controller-manager: 1 of 2 pods ready, kueue-1 waits: ImagePullBackOff no such image"},
		"a pod finds no node":       {change(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 1 }), homeless, "kueue-controller-manager: 1 of 2 pods ready, kueue-2 is not scheduled: 0/3 nodes are available"},
	} {
		t.Run(name, func(t *testing.T) {
			typed := fake.NewClientset(c.deployment)
			if c.pod != nil {
				c.pod.Labels = map[string]string{"app": "kueue"}
				if err := typed.Tracker().Add(c.pod); err != nil {
					t.Fatal(err)
				}
			}
			all, err := Unready(t.Context(), access.API{Interface: typed}, wanted())
			if got := strings.Join(all, "; "); err != nil || got != c.want {
				t.Errorf("got %q (%v), want %q", got, err, c.want)
			}
		})
	}
}

func TestADeploymentThatIsNotThereIsWaitedFor(t *testing.T) {
	all, err := Unready(t.Context(), access.API{Interface: fake.NewClientset()}, wanted())
	if err != nil || strings.Join(all, "") != "the Deployment kueue-controller-manager is not there" {
		t.Errorf("got %q (%v)", all, err)
	}
}

func TestAKindIsWaitedForUntilItIsServed(t *testing.T) {
	crd := definitions("kueue.x-k8s.io/ClusterQueue")[0]
	for want, status := range map[string]string{"": "True", "the kind clusterqueues.kueue.x-k8s.io is not served yet": "False"} {
		there := crd.DeepCopy()
		there.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": status}}}
		all, err := Unready(t.Context(), access.API{Client: fakeclient.NewClientBuilder().WithObjects(there).Build()}, []helmrelease.Object{crd})
		if got := strings.Join(all, "; "); err != nil || got != want {
			t.Errorf("with Established %s: got %q (%v), want %q", status, got, err, want)
		}
	}
}

func TestWhatIsNotReadyIsToldOnceAndInTheEnd(t *testing.T) {
	var progress strings.Builder
	err := Ready(t.Context(), access.API{Interface: fake.NewClientset()}, wanted(), time.Second, &progress)
	wording.Wanted(t, err, "the platform is not ready after 1s; what is installed is kept: the Deployment kueue-controller-manager is not there")
	if got := progress.String(); got != "  the Deployment kueue-controller-manager is not there\n" {
		t.Errorf("it says %q", got)
	}
	well := deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2})
	if err := Ready(t.Context(), access.API{Interface: fake.NewClientset(well)}, wanted(), time.Minute, io.Discard); err != nil {
		t.Error(err)
	}
}
