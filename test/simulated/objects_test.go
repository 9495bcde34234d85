// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// submit creates an AppWrapper of a Job with four pods of eight GPUs each, which run until they
// are told to stop.
func submit(t *testing.T, alice client.Client) {
	t.Helper()
	all := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](4),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"localcluster.mlbatch.dev/run-for": "1s"}},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{
					{Name: "main", Image: "registry.example/work:1", Resources: corev1.ResourceRequirements{Requests: all, Limits: all}},
				}},
			},
		},
	}
	raw, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	aw := &workload.AppWrapper{ObjectMeta: inTeam(name), Spec: workload.AppWrapperSpec{
		Components: []workload.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}},
	}}
	if err := alice.Create(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
}

// forNobody creates a pod that selects the platform's node but does not belong to the platform.
func forNobody(t *testing.T, admin client.Client) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"localcluster.mlbatch.dev/real": "true"},
			Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:   []corev1.Container{{Name: "main", Image: "registry.example/other:1"}},
		},
	}
	if err := admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// killOperator kills the process of KubeRay's operator, which the node must restart.
func killOperator(t *testing.T, p person) {
	t.Helper()
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		command, _ := os.ReadFile(file)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if strings.HasPrefix(exe, p.dir()) && strings.HasPrefix(string(command), "/manager\x00") && strings.Contains(string(env), "HOSTNAME=kuberay-operator") {
			kill(t, filepath.Base(filepath.Dir(file)))
			return
		}
	}
	t.Fatal("no process is KubeRay's operator")
}

// Pods have addresses from firstPod on; lower ones belong to the node.
var podAddresses, firstPod = netip.MustParsePrefix("10.200.0.0/24"), netip.MustParseAddr("10.200.0.10")

// wantOperatorsToBeThemselves checks in the audit log that each operator uses its own service
// account.
func wantOperatorsToBeThemselves(t *testing.T, p person) {
	t.Helper()
	prefix := "system:serviceaccount:" + platform.Namespace + ":"
	asked := map[string]bool{}
	for _, event := range p.audit(t).news() {
		for _, source := range event.SourceIPs {
			ip, err := netip.ParseAddr(source)
			if err != nil || !podAddresses.Contains(ip) || ip.Less(firstPod) {
				continue
			}
			account, own := strings.CutPrefix(event.User.Username, prefix)
			if !own {
				t.Fatalf("a pod acts as %s", event.User.Username)
			}
			asked[account] = true
		}
	}
	for _, account := range []string{
		"kueue-controller-manager", "scheduler-plugins-scheduler", "scheduler-plugins-controller", "training-operator", "kuberay-operator",
		"appwrapper-controller-manager",
	} {
		if !asked[account] {
			t.Errorf("%s sent no request; these did: %v", account, asked)
		}
	}
}
