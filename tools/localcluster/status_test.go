// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func TestComponentsJoinPlanAndProcesses(t *testing.T) {
	p := plan.Plan{Programs: []plan.Program{{Name: "etcd", Path: "/b/server"}, {Name: "kubelet", Path: "/b/kubelet"}}}
	members := []process{
		{pid: 9, program: "/b/keeper"},
		{pid: 10, program: "/b/server", began: 2 * time.Second, cpu: 1500 * time.Millisecond, memory: 4096},
	}
	etcd := Component{Name: "etcd", State: Running, PID: 10, UpSeconds: 98, CPUSeconds: 1.5, MemoryBytes: 4096}
	with := func(c Component, problem string) Component { c.Problem = problem; return c }
	for name, c := range map[string]struct {
		report plan.Status
		health plan.Health
		want   []Component
	}{
		"the second is not started yet": {plan.Status{Waiting: "etcd"}, plan.Health{"etcd": "", "kubelet": "refused"},
			[]Component{etcd, {Name: "kubelet", State: Waiting}}},
		"the first does not answer": {plan.Status{Waiting: "etcd"}, plan.Health{"etcd": "refused"},
			[]Component{with(etcd, "refused"), {Name: "kubelet", State: Waiting}}},
		"the second has ended": {plan.Status{Ready: true, Restarts: map[string]int{"kubelet": 2}, Failing: map[string]string{"kubelet": "ended with exit status 1"}}, plan.Health{"etcd": ""},
			[]Component{etcd, {Name: "kubelet", State: Restarting, Restarts: 2, Problem: "ended with exit status 1"}}},
		"the second ended before all were ready": {plan.Status{Waiting: "kubelet", Restarts: map[string]int{"kubelet": 1}}, plan.Health{"etcd": ""},
			[]Component{etcd, {Name: "kubelet", State: Restarting, Restarts: 1, Problem: "has no process"}}},
		"nobody could try probes": {plan.Status{Ready: true, Restarts: map[string]int{"etcd": 3}}, nil,
			[]Component{{Name: "etcd", State: Running, Problem: healthUnknown, Restarts: 3, PID: 10, UpSeconds: 98, CPUSeconds: 1.5, MemoryBytes: 4096},
				{Name: "kubelet", State: Restarting, Problem: "has no process"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, statusOfPrograms(p, c.report, c.health, members, 100*time.Second)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheVersionComesFromTheBinary(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := versionOf(own); got == "" {
		t.Error("this program has no version")
	}
	if got := versionOf("/dev/null"); got != "" {
		t.Errorf("nothing has the version %s", got)
	}
}

func TestUseIncludesExitedProcesses(t *testing.T) {
	got := use([]process{{cpu: time.Second, ended: 2 * time.Second, memory: 10}, {cpu: 500 * time.Millisecond, memory: 5}})
	if diff := cmp.Diff(&Use{Processes: 2, CPUSeconds: 3.5, MemoryBytes: 15}, got); diff != "" {
		t.Error(diff)
	}
}

func TestProblemsAreJoinedToOneSentence(t *testing.T) {
	ready := plan.Status{Ready: true}
	well := Status{
		Name: "x", Components: []Component{{Name: "etcd", State: Running}}, Nodes: []Nodes{{"real", 1, 1}, {"simulated", 0, 0}},
		Deployments: []Deployment{{Name: "kube-system/coredns", Ready: 1, All: 1}},
	}
	for name, c := range map[string]struct {
		status Status
		report plan.Status
		errs   []error
		want   string
	}{
		"all is well":            {well, ready, []error{nil, nil}, ""},
		"it has just begun":      {Status{Name: "x"}, plan.Status{}, []error{errors.New("silent")}, `cluster "x" is starting and waits for its keeper`},
		"it waits for a program": {well, plan.Status{Waiting: "kubelet"}, nil, `cluster "x" is starting and waits for kubelet`},
		"it could not start":     {well, plan.Status{Error: "kwok did not become ready"}, nil, `cluster "x" is unhealthy: kwok did not become ready`},
		"much is wrong": {Status{
			Name:        "x",
			Components:  []Component{{Name: "etcd", State: Running, Problem: "refused"}, {Name: "kwok", State: Restarting, Problem: "was killed"}},
			Nodes:       []Nodes{{"real", 0, 1}, {"simulated", 2, 2}},
			Deployments: []Deployment{{Name: "a/b", Ready: 1, All: 2}},
		}, ready, nil, `cluster "x" is unhealthy: etcd is running (refused); kwok is restarting (was killed); 0 of 1 real nodes are ready; 1 of 2 pods of a/b are ready`},
		"the keeper is silent": {Status{Name: "x", Components: []Component{{Name: "etcd", State: Running, Problem: healthUnknown}}}, ready,
			[]error{errors.New("the keeper does not answer"), errors.New("the API server is not ready")},
			`cluster "x" is unhealthy: the keeper does not answer; the API server is not ready`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.status.problem(c.report, c.errs...); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNodesAreCountedByKind(t *testing.T) {
	simulated := func(n *corev1.Node) { n.Labels = map[string]string{simulatedNodeLabel: "true"} }
	full := func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
	}
	for name, c := range map[string]struct {
		nodes []corev1.Node
		asked plan.Keeper
		want  []Nodes
	}{
		"none has come yet":        {nil, plan.Keeper{SimulatedNodes: 3}, []Nodes{{"real", 0, 1}, {"simulated", 0, 3}}},
		"two are for the platform": {[]corev1.Node{*node("x")}, plan.Keeper{PlatformNodes: 2}, []Nodes{{"real", 1, 2}, {"simulated", 0, 0}}},
		"all are ready":            {[]corev1.Node{*node("x"), *node("gpu-0", simulated)}, plan.Keeper{SimulatedNodes: 1}, []Nodes{{"real", 1, 1}, {"simulated", 1, 1}}},
		"the disk is full":         {[]corev1.Node{*node("x", full)}, plan.Keeper{}, []Nodes{{"real", 0, 1}, {"simulated", 0, 0}}},
		"somebody has added nodes": {[]corev1.Node{*node("x"), *node("y", full), *node("gpu-0", simulated)}, plan.Keeper{}, []Nodes{{"real", 1, 2}, {"simulated", 1, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, countNodes(c.nodes, c.asked)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAStoppedClusterHasOnlyAProblem(t *testing.T) {
	c, _ := newCluster(t)
	want := Status{Name: "unit-x", Problem: `cluster "unit-x" is not running; start it with: localcluster up --name=unit-x`}
	if diff := cmp.Diff(want, c.Status(t.Context())); diff != "" {
		t.Error(diff)
	}
}

func TestAStartingClusterHasAStatus(t *testing.T) {
	c, _ := newCluster(t)
	pretendRunning(t, c)
	s := c.Status(t.Context())
	if s.Problem != `cluster "unit-x" is starting and waits for its keeper` || s.Use.Processes < 1 || s.Mode != Real || s.Address != "https://127.0.0.1:4711" {
		t.Errorf("it is %+v", s)
	}
	if err := plan.Write(c.Dir(), plan.StatusFile, plan.Status{Ready: true}); err != nil {
		t.Fatal(err)
	}
	s = c.Status(t.Context())
	wantSentence(t, errors.New(s.Problem), `cluster "unit-x" is unhealthy`, "the keeper does not answer", "still starting")
}

func TestStatusJoinsKeeperAndAPIServer(t *testing.T) {
	c, _ := newCluster(t)
	pretendRunning(t, c)
	for file, content := range map[string]any{
		plan.File:       plan.Plan{Programs: []plan.Program{{Name: "etcd", Path: os.Args[0]}}},
		plan.StatusFile: plan.Status{Ready: true, Restarts: map[string]int{"etcd": 1}},
	} {
		if err := plan.Write(c.Dir(), file, content); err != nil {
			t.Fatal(err)
		}
	}
	answerHealth(t, c, plan.Health{"etcd": ""})
	two := int32(2)
	answerAPI(t, c, map[string]any{
		"/readyz":       "ok",
		"/api/v1/nodes": corev1.NodeList{Items: []corev1.Node{*node("unit-x"), *node("gpu-0"), *node("gpu-1"), *node("gpu-2")}},
		"/apis/apps/v1/namespaces/ns/deployments": appsv1.DeploymentList{Items: []appsv1.Deployment{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"},
			Spec:       appsv1.DeploymentSpec{Replicas: &two, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "i:1"}}}}},
			Status:     appsv1.DeploymentStatus{ReadyReplicas: 1},
		}}},
	})
	s := c.Status(t.Context(), "ns")
	if diff := cmp.Diff([]Deployment{{Name: "ns/d", Ready: 1, All: 2, Images: []string{"i:1"}}}, s.Deployments); diff != "" {
		t.Error(diff)
	}
	if got := s.Components[0]; got.State != Running || got.PID != os.Getpid() || got.Restarts != 1 || got.Version == "" || got.Problem != "" {
		t.Errorf("the component is %+v", got)
	}
	wantSentence(t, errors.New(s.Problem), "0 of 3 simulated nodes are ready; 1 of 2 pods of ns/d are ready")
}

// answerHealth serves health like a keeper.
func answerHealth(t *testing.T, c *Cluster, health plan.Health) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(c.Dir(), plan.HealthSocket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_ = json.NewEncoder(conn).Encode(health)
			conn.Close()
		}
	}()
}

// answerAPI serves like an API server.
func answerAPI(t *testing.T, c *Cluster, answers map[string]any) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	write(t, c.KubeconfigPath(), fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: x, cluster: {server: %q}}], contexts: [{name: x, context: {cluster: x, user: ""}}]}`, server.URL))
}
