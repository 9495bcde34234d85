// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// story is one test's view of the cluster: one team's namespace, and a client with the rights
// of one of its members for what a user does.
type story struct {
	t         *testing.T
	namespace string
	// clusterQueue is set if its name does not follow from the namespace.
	clusterQueue string
	admin        *resources.Resources
	user         client.Client
	editor       client.Client        // a user with Kubernetes' own role edit; see befriend
	api          kubernetes.Interface // the administrator's, for logs
	created      []client.Object
}

// requires skips a test that needs what this cluster lacks. On our own cluster, which has
// everything, it fails the test.
func requires(t *testing.T, wanted ...needs.Need) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	switch verdict := report.Judge(here, name, wanted...); {
	case verdict.Wrong:
		t.Fatal(verdict.Why)
	case verdict.Why != "":
		t.Skip(verdict.Why)
	}
}

// tell begins a story if this cluster has what it needs. If the test fails, it prints objects,
// events and logs. It removes what the story has created.
func tell(t *testing.T, cfg *envconf.Config, namespace, user string, wanted ...needs.Need) *story {
	t.Helper()
	s := begin(t, cfg, namespace, user, wanted...)
	t.Cleanup(func() {
		if t.Failed() {
			s.explain()
		}
		s.clear()
	})
	return s
}

// begin begins a story that cleans up by itself.
func begin(t *testing.T, cfg *envconf.Config, namespace, user string, wanted ...needs.Need) *story {
	t.Helper()
	requires(t, wanted...)
	config := rest.CopyConfig(cfg.Client().RESTConfig())
	admin, err := resources.New(config) // the framework's own client has one namespace for all stories
	if err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &story{t: t, namespace: namespace, admin: admin.WithNamespace(namespace), user: as(t, cfg, user), api: api}
}

// as returns a client that impersonates a user in groups.
func as(t *testing.T, cfg *envconf.Config, user string, groups ...string) client.Client {
	t.Helper()
	return knowing(t, cfg, nil, user, groups...)
}

// knowing is as, with a mapper of its own: mlbatch does not ask the cluster which kinds it serves.
func knowing(t *testing.T, cfg *envconf.Config, mapper meta.RESTMapper, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cfg.Client().RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	member, err := client.New(config, client.Options{Scheme: cfg.Client().Resources().GetScheme(), Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return member
}

// create creates an object as the user.
func (s *story) create(ctx context.Context, object client.Object) {
	s.t.Helper()
	object.SetNamespace(s.namespace)
	if err := s.user.Create(ctx, object); err != nil {
		s.t.Fatalf("cannot create %s: %v", object.GetName(), err)
	}
	s.created = append(s.created, object)
}

// remove deletes an object as the user.
func (s *story) remove(ctx context.Context, object client.Object) {
	s.t.Helper()
	if err := s.user.Delete(ctx, object); err != nil {
		s.t.Fatalf("cannot delete %s: %v", object.GetName(), err)
	}
}

// until waits until nothing is missing, or fails the test.
func (s *story) until(ctx context.Context, what string, ask question) {
	s.t.Helper()
	if err := await(ctx, ask); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// kinds are the kinds that stories create, directly or through controllers.
func kinds() []k8s.ObjectList {
	return []k8s.ObjectList{
		&v1alpha1.RunList{}, &v1alpha1.ApplicationList{}, &workload.AppWrapperList{}, &kueue.WorkloadList{}, &batchv1.JobList{}, &kubeflow.PyTorchJobList{},
		&podgroup.PodGroupList{}, &rayv1.RayClusterList{}, &corev1.PodList{}, &corev1.ServiceList{},
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.ReplicaSetList{}, &corev1.ReplicationControllerList{},
		&kubeflow.TFJobList{}, &kubeflow.XGBoostJobList{}, &kubeflow.PaddleJobList{}, &kubeflow.JAXJobList{}, &kubeflow.MPIJobList{},
		&rayv1.RayJobList{}, &rayv1.RayServiceList{}, &jobset.JobSetList{}, &lws.LeaderWorkerSetList{},
		&unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "e2e.mlbatch.dev/v1", "kind": "RehearsalList"}},
	}
}

// left returns "" if the namespace contains none of these objects.
func (s *story) left(ctx context.Context) (string, error) {
	for _, list := range kinds() {
		if err := s.admin.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
			return "", err
		}
		if left := meta.LenList(list); left > 0 {
			return fmt.Sprintf("a %T of %d", list, left), nil
		}
	}
	return "", nil
}

// in returns the story in a subtest.
func (s *story) in(t *testing.T) *story {
	within := *s
	within.t = t
	return &within
}

// clear removes what the story has created and waits until it is gone, because the next story
// needs the nodes.
func (s *story) clear() {
	err := await(context.Background(), func(ctx context.Context) (string, error) {
		for _, object := range s.created {
			if err := client.IgnoreNotFound(s.admin.Delete(ctx, object)); err != nil {
				return "", fmt.Errorf("cannot remove %s: %w", object.GetName(), err)
			}
		}
		return s.left(ctx)
	})
	if err != nil {
		s.t.Errorf("the story leaves something in %s: %v", s.namespace, err)
		s.explain()
	}
}
