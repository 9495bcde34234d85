// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package racks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/explain"
	"github.com/mlbatch/mlbatch/test/quotawatch"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

const (
	nodes = 16
	// inARack are its nodes, and two racks are in a block.
	inARack = 4
	rack    = "example.com/rack"
	team    = "vision"
	limit   = 2 * time.Minute
)

// world is a cluster whose nodes are in racks.
type world struct {
	*testing.T
	admin, alice client.Client
	sample       *workload.AppWrapper
}

func newWorld(t *testing.T) *world {
	t.Helper()
	admin, cluster := sandbox.Start(t, "racks", 26671, nodes, nil)
	checkout, err1 := localcluster.FindCheckout(".")
	config, err2 := cluster.RESTConfig()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	quota, err := quotawatch.Start(t.Context(), admin, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	logs, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := quota.End(ctx); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			cluster := explain.Cluster{Objects: admin, Logs: logs, Print: t.Logf}
			cluster.Kinds(ctx, team, &workload.AppWrapperList{}, &kueue.WorkloadList{})
			cluster.Events(ctx, team)
			cluster.PodLogs(ctx, platform.Namespace)
		}
	})
	w := &world{T: t, admin: admin, alice: as(t, config, "alice"), sample: read(t, filepath.Join(checkout, "samples/topology/one-rack.yaml"))}
	w.label()
	site := platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stderr}
	err = site.PackageCharts(t.Context())
	if err == nil {
		err = site.Onboard(t.Context(), "setup/teams/racks.yaml")
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func as(t *testing.T, config *rest.Config, user string) client.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: why.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t *testing.T, file string) *workload.AppWrapper {
	t.Helper()
	text, err := os.ReadFile(file)
	aw := &workload.AppWrapper{}
	if err == nil {
		err = yaml.UnmarshalStrict(text, aw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return aw
}

// label says where each node is: gpu-0 to gpu-3 are in one rack, and so on.
func (w *world) label() {
	w.Helper()
	for i := range nodes {
		patch := fmt.Sprintf(`{"metadata": {"labels": {"example.com/pool": "h100", "example.com/block": "b%d", %q: "r%d"}}}`,
			i/(2*inARack), rack, i/inARack)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gpu-%d", i)}}
		if err := w.admin.Patch(w.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			w.Fatal(err)
		}
	}
}

// submit submits the sample under another name, after a change of its Job.
func (w *world) submit(name string, change func(*batchv1.Job)) {
	w.Helper()
	job := &batchv1.Job{}
	aw := w.sample.DeepCopy()
	aw.Namespace, aw.Name = team, name
	template := &aw.Spec.Components[0].Template
	err := json.Unmarshal(template.Raw, job)
	if err == nil {
		job.Name = name
		change(job)
		template.Raw, err = json.Marshal(job)
	}
	if err == nil {
		err = w.alice.Create(w.Context(), aw)
	}
	if err != nil {
		w.Fatalf("cannot submit %s: %v", name, err)
	}
}

func asItIs(*batchv1.Job) {}

// occupy takes one GPU of a node.
func (w *world) occupy(node string) {
	w.Helper()
	w.submit("on-"+node, func(job *batchv1.Job) {
		one := int32(1)
		job.Spec.Parallelism, job.Spec.Completions = &one, &one
		job.Spec.Template.Annotations = nil
		job.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		c := &job.Spec.Template.Spec.Containers[0]
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			gpus := list["nvidia.com/gpu"]
			gpus.Set(1)
			list["nvidia.com/gpu"] = gpus
		}
	})
	w.await("on-"+node, func(pods []corev1.Pod) error {
		if on := pods[0].Spec.NodeName; on != node {
			return fmt.Errorf("its pod is on %q", on)
		}
		return nil
	})
}

// await waits until the pods of a job run, and fulfil a condition.
func (w *world) await(name string, condition func([]corev1.Pod) error) {
	w.Helper()
	err := sandbox.Within(w.Context(), limit, func() error {
		aw := &workload.AppWrapper{}
		if err := w.admin.Get(w.Context(), client.ObjectKey{Namespace: team, Name: name}, aw); err != nil {
			return err
		}
		if aw.Status.Phase != workload.AppWrapperRunning {
			return fmt.Errorf("it is %s: %v", aw.Status.Phase, aw.Status.Conditions)
		}
		pods := &corev1.PodList{}
		err := w.admin.List(w.Context(), pods, client.InNamespace(team), client.MatchingLabels{batchv1.JobNameLabel: name})
		if err == nil && len(pods.Items) == 0 {
			err = errors.New("it has no pods")
		}
		if err != nil {
			return err
		}
		return condition(pods.Items)
	})
	if err != nil {
		w.Fatalf("%s: %v\n%s", name, err, w.why(name))
	}
}

func (w *world) why(name string) string {
	answer, err := why.Explain(w.Context(), w.alice, why.Target{Kind: "appwrapper", Namespace: team, Name: name}, time.Now())
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%+v", answer)
}

// inRack: all four pods run in the rack, those with neighbouring indexes on neighbouring nodes.
func inRack(number int) func([]corev1.Pod) error {
	return func(pods []corev1.Pod) error {
		slices.SortFunc(pods, func(x, y corev1.Pod) int {
			return strings.Compare(x.Annotations[batchv1.JobCompletionIndexAnnotation], y.Annotations[batchv1.JobCompletionIndexAnnotation])
		})
		var on, want []string
		for i := range inARack {
			want = append(want, fmt.Sprintf("gpu-%d", number*inARack+i))
		}
		for _, p := range pods {
			on = append(on, p.Spec.NodeName)
		}
		slices.SortFunc(want, strings.Compare) // as Kueue sorts them
		if !slices.Equal(on, want) {
			return fmt.Errorf("its pods, by index, are on %v, want %v", on, want)
		}
		return nil
	}
}

// remove deletes a job, and waits until its pods are gone.
func (w *world) remove(name string) {
	w.Helper()
	aw := &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}
	err := w.alice.Delete(w.Context(), aw)
	if err == nil {
		err = sandbox.Within(w.Context(), limit, func() error {
			err := w.admin.Get(w.Context(), client.ObjectKeyFromObject(aw), aw)
			if err == nil {
				err = errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
	}
	if err != nil {
		w.Fatalf("%s: %v", name, err)
	}
}

func TestGangsInRacks(t *testing.T) {
	w := newWorld(t)
	w.staysWithinARack()
	w.leavesABadRack()
	w.staysWithinItsRack()
	w.hasItsQuota("65") // of first, second and on-gpu-15
}

// Each rack but one has a node that is not free. So a gang of four whole nodes has its place in that
// one, and the next gang waits, although there is quota, and enough nodes are free in all.
func (w *world) staysWithinARack() {
	w.Helper()
	for _, node := range []string{"gpu-1", "gpu-6", "gpu-15"} {
		w.occupy(node)
	}
	w.submit("first", asItIs)
	w.await("first", inRack(2))
	w.submit("second", asItIs)
	err := sandbox.Within(w.Context(), limit, func() error {
		if answer := w.why("second"); !strings.Contains(answer, "NoTopology") {
			return errors.New(answer)
		}
		return nil
	})
	if err != nil {
		w.Fatalf("mlbatch why does not say that no rack is free: %v", err)
	}
	w.remove("on-gpu-6")
	w.await("second", inRack(1))
}
