// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/explain"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

const (
	// name is that of the cluster, and of its node that runs pods.
	name = "realfaults"
	// real is the label of that node.
	real = "localcluster.mlbatch.dev/real"
	// elsewhere are simulated nodes, to which work may move.
	elsewhere = 4
)

// TestMain lets stories wait for each other, so none may wait for a place.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "100"); err != nil {
		fmt.Fprintln(os.Stderr, "test/realfaults:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// room is the cluster, and what is seen in it.
type room struct {
	sandbox.Story
	cluster *localcluster.Cluster
	admin   client.WithWatch
	config  *rest.Config
	lives   *lives
	devices *devices
}

// in is the room in a subtest.
func (r room) in(t *testing.T) *room {
	r.T = t
	return &r
}

// newRoom starts a cluster with the platform, until the test ends.
func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{Story: sandbox.Story{T: t}, lives: &lives{of: map[string][]look{}, ends: map[string][]string{}}}
	r.cluster = sandbox.New(t, localcluster.Config{Name: name, Port: 26661, SimulatedNodes: elsewhere})
	site := platform.Site{
		Cluster: r.cluster, Checkout: r.cluster.Config().Checkout, Progress: os.Stderr, Values: []string{"test/realfaults/testdata/platform.yaml"},
	}
	r.Must(site.PackageCharts(t.Context()))
	training, err := site.Build(t.Context())
	r.Must(err)
	r.Must(r.cluster.Up(t.Context()))
	r.Must(site.LoadImages(t.Context(), training))
	r.Must(site.Install(t.Context()))
	r.Must(site.Onboard(t.Context(), "test/realfaults/testdata/teams.yaml"))
	r.admin = sandbox.Connect(t, r.cluster)
	r.config, err = r.cluster.RESTConfig()
	r.Must(err)
	t.Cleanup(r.explain)
	sandbox.Follow(t, r.admin, &workload.AppWrapperList{}, r.lives.hear)
	sandbox.Follow(t, r.admin, &corev1.PodList{}, r.lives.hearPod, client.HasLabels{workload.AppWrapperLabel})
	r.devices = r.plugIn()
	return r
}

// explain prints what there is, if the test has failed.
func (r *room) explain() {
	if !r.Failed() {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), patience.For(patience.Short))
	defer stop()
	logs, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		r.Error(err)
		return
	}
	here := explain.Cluster{Objects: r.admin, Logs: logs, Print: r.Logf, Simulated: func(p corev1.Pod) bool { return p.Spec.NodeName != name }}
	for _, namespace := range []string{"blue", "green", "red"} {
		here.Kinds(ctx, namespace, &workload.AppWrapperList{}, &kueue.WorkloadList{}, &corev1.PodList{})
		here.Events(ctx, namespace)
		here.PodLogs(ctx, namespace)
	}
	here.Kinds(ctx, "", &corev1.NodeList{})
	here.PodLogs(ctx, platform.Namespace)
}
