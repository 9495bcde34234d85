// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// RunsAccount is the service account of the controller of Runs.
const RunsAccount = "codeflare-controller-manager"

// WithRuns are values of charts/mlbatch: the controller of Runs is a part of the platform.
func WithRuns() map[string]any { return map[string]any{"codeflare": map[string]any{"enabled": true}} }

// AllowRuns lets the controller of Runs work in a namespace.
func AllowRuns(t *testing.T, admin client.Client, namespace string) {
	t.Helper()
	Create(t, admin, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runs"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mlbatch-runs"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: platform.Namespace, Name: RunsAccount}},
	})
}

// Program is an Application whose pods run until they are told to end.
func Program(namespace string) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "program"},
		Spec:       v1alpha1.ApplicationSpec{API: v1alpha1.APIShell, Image: "registry.example/work:1", Command: "work"},
	}
}

// RunOf is a small Run of the program.
func RunOf(program *v1alpha1.Application, name string) *v1alpha1.Run {
	return &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: program.Namespace, Name: name},
		Spec: v1alpha1.RunSpec{
			Application: v1alpha1.ApplicationReference{Name: program.Name}, Size: "xs",
			Resources: map[corev1.ResourceName]v1alpha1.Amount{"cpu": v1alpha1.MustParseAmount("10m"), "memory": v1alpha1.MustParseAmount("10Mi")},
		},
	}
}
