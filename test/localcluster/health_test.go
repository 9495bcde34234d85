// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/explain"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// eventually asks until there is no complaint.
func eventually(t *testing.T, what string, complaint func(context.Context) error) {
	t.Helper()
	patience.Await(t, what, complaint)
}

// wantHealthy checks that every part of the cluster works. Each check depends on the keeper or
// one of its programs.
func (c cluster) wantHealthy(t *testing.T) {
	t.Helper()
	eventually(t, "every program is ready", func(context.Context) error {
		if s := c.status(t); !s.Ready || len(s.Failing) > 0 {
			return fmt.Errorf("the keeper says %+v", s)
		}
		return nil
	})
	api := c.api(t)
	defer c.explainFailure(t)
	eventually(t, "nodes are ready", func(ctx context.Context) error { return nodesReady(ctx, api) })
	jobs := []*batchv1.Job{simulatedJob()}
	if c.mode.real {
		jobs = append(jobs, realJob())
	}
	for _, job := range jobs {
		eventually(t, "a Job is created", func(ctx context.Context) error { return api.Create(ctx, job) })
	}
	for _, job := range jobs {
		eventually(t, "a new pod of "+job.GenerateName+" finishes", func(ctx context.Context) error {
			if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil || job.Status.Succeeded > 0 {
				return err
			}
			return fmt.Errorf("the Job's status is %+v", job.Status)
		})
	}
	if c.mode.real {
		c.wantServices(t, api)
	} else {
		c.wantProcesses(t, api)
	}
}

// explainFailure prints objects, events and logs of the cluster.
func (c cluster) explainFailure(t *testing.T) {
	if !t.Failed() {
		return
	}
	shown := explain.Cluster{Objects: c.api(t), Print: t.Logf}
	ctx := context.WithoutCancel(t.Context())
	shown.Kinds(ctx, "", &corev1.NodeList{})
	shown.Kinds(ctx, "default", &batchv1.JobList{}, &corev1.PodList{})
	shown.Events(ctx, "default")
}

// wantProcesses checks that a new pod of the platform's kind runs.
func (c cluster) wantProcesses(t *testing.T, api client.Client) {
	t.Helper()
	pod := c.processPod(t, api, "pause")
	eventually(t, "a new pod runs as a process", func(ctx context.Context) error { return runsOnce(ctx, api, pod) })
	if err := api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// runsOnce reads the pod, and also checks its process: the node reports the pod as running
// before the process has entered it.
func runsOnce(ctx context.Context, api client.Client, pod *corev1.Pod) error {
	if err := api.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	if pids := processesOf(pod); pod.Status.Phase != corev1.PodRunning || len(pids) != 1 {
		return fmt.Errorf("its processes are %v, and its status is %+v", pids, pod.Status)
	}
	return nil
}

// processPod creates a pod of the platform's kind, which runs a workload.
func (c cluster) processPod(t *testing.T, api client.Client, workloadCommand string) *corev1.Pod {
	t.Helper()
	err := c.described().RunInstead(map[string]plan.Image{localcluster.WorkloadImage: {File: workload(), Path: "/workload"}})
	if err != nil {
		t.Fatal(err)
	}
	no := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "process-", Namespace: "default"},
		Spec: corev1.PodSpec{
			NodeName: c.name, AutomountServiceAccountToken: &no,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "main", Image: localcluster.WorkloadImage, Command: []string{"/workload", workloadCommand},
			}},
		},
	}
	eventually(t, "a pod is created", func(ctx context.Context) error { return api.Create(ctx, pod) })
	return pod
}

func nodesReady(ctx context.Context, api client.Client) error {
	nodes := &corev1.NodeList{}
	if err := api.List(ctx, nodes); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key != "nvidia.com/gpu" && taint.Key != "localcluster.mlbatch.dev/platform" {
				return fmt.Errorf("node %s has the taint %s", node.Name, taint.Key)
			}
		}
		for _, condition := range node.Status.Conditions {
			if (condition.Type == corev1.NodeReady) != (condition.Status == corev1.ConditionTrue) {
				return fmt.Errorf("node %s has %s=%s", node.Name, condition.Type, condition.Status)
			}
		}
	}
	return nil
}

func realJob() *batchv1.Job {
	return job("real-", corev1.PodSpec{
		NodeSelector: map[string]string{"localcluster.mlbatch.dev/real": "true"},
		Containers: []corev1.Container{{
			Name: "main", Image: localcluster.WorkloadImage, Args: []string{"exit", "0"}, ImagePullPolicy: corev1.PullNever,
		}},
	})
}

func simulatedJob() *batchv1.Job {
	j := job("simulated-", corev1.PodSpec{
		NodeSelector: map[string]string{"localcluster.mlbatch.dev/simulated": "true"},
		Tolerations:  []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
		Containers:   []corev1.Container{{Name: "main", Image: "images.local/none"}},
	})
	j.Spec.Template.Annotations = map[string]string{"localcluster.mlbatch.dev/run-for": "100ms"}
	return j
}

func job(name string, pod corev1.PodSpec) *batchv1.Job {
	pod.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name, Namespace: "default"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}},
	}
}

// wantServices creates a Service for the API server and connects to it on the node, which works
// only if kube-proxy has seen it.
func (c cluster) wantServices(t *testing.T, api client.Client) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "new-", Namespace: "default"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}
	if err := api.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	port, address := int32(6443), "10.200.0.1"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service.Name, Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
		Ports:       []discoveryv1.EndpointPort{{Port: &port}},
	}
	if err := api.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new Service answers", func(context.Context) error {
		return inNetworkOf(c.keeper(t), func() error {
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(service.Spec.ClusterIP, "443"), time.Second)
			if err != nil {
				return err
			}
			return conn.Close()
		})
	})
}

// keepObject creates an object, and returns a check that it still exists.
func (c cluster) keepObject(t *testing.T) (wantKept func(*testing.T)) {
	t.Helper()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "kept-", Namespace: "default"}, Data: map[string]string{"word": "kept"},
	}
	if err := c.api(t).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		t.Helper()
		found := &corev1.ConfigMap{}
		err := c.api(t).Get(t.Context(), client.ObjectKeyFromObject(object), found)
		if err == nil && (found.UID != object.UID || found.Data["word"] != "kept") {
			err = errors.New("it is another one")
		}
		if err != nil {
			t.Errorf("an object from before is not there: %v", err)
		}
	}
}
