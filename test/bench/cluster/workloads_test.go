// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/artifacts/components"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

var (
	turns     = flag.Int("bench.turns", 1, "let Kueue's own runner measure so often without our controllers, and with them")
	workloads = flag.String("bench.workloads", "", "file for what it says as JSON")
)

// runner is Kueue's own measurement of its scheduler.
var runner = components.Component{
	Name: "kueue-performance", Folder: "kueue-performance",
	Packages: []string{"sigs.k8s.io/kueue/test/performance/scheduler/runner"}, Binaries: []string{"runner"},
}

// The same Workloads pass through Kueue without our controllers, and with them, in turn. The rest of the
// platform stays.
func TestKueuesOwnRunner(t *testing.T) {
	m := newMachine(t)
	program := m.buildRunner()
	w := bench.Workloads{Head: describe(t)}
	for pair := range *turns {
		for _, with := range []bool{false, true} {
			m.scaleOurs(with)
			m.cleared()
			turn := m.workloads(program)
			turn.With, turn.Pair = with, pair+1
			t.Logf("pair %d, with our controllers %t: %.1f Workloads a second", turn.Pair, with, turn.PerSecond)
			w.Results = append(w.Results, turn)
		}
	}
	t.Logf("\n%s\n\n%s", w.Head, w.Table())
	if *workloads != "" {
		keep(t, *workloads, w)
	}
}

func (m *machine) buildRunner() string {
	m.Helper()
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		m.Fatal(err)
	}
	cache, err := components.UserCache(checkout)
	if err != nil {
		m.Fatal(err)
	}
	built, err := cache.Get(m.Context(), os.Stderr, runner)
	if err != nil {
		m.Fatal(err)
	}
	return built["runner"]
}

// scaleOurs starts or ends our controllers.
func (m *machine) scaleOurs(run bool) {
	m.Helper()
	replicas := int32(0)
	if run {
		replicas = 1
	}
	for _, name := range []string{bench.Ours, bench.OfRuns} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ourNamespace, Name: name}}
		if err := m.admin.Get(m.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			m.Fatal(err)
		}
		before := d.DeepCopy()
		d.Spec.Replicas = &replicas
		if err := m.admin.Patch(m.Context(), d, client.MergeFrom(before)); err != nil {
			m.Fatal(err)
		}
		err := sandbox.Within(m.Context(), 2*time.Minute, func() error {
			err := m.admin.Get(m.Context(), client.ObjectKeyFromObject(d), d)
			if s := d.Status; err == nil && (s.ObservedGeneration < d.Generation || s.Replicas != replicas || s.ReadyReplicas != replicas) {
				err = fmt.Errorf("of %d replicas of %s, %d are ready", s.Replicas, name, s.ReadyReplicas)
			}
			return err
		})
		if err != nil {
			m.Fatal(err)
		}
	}
}

// ofTheRunner is a label of all that the runner makes.
const ofTheRunner = "kueue.x-k8s.io/performance-scheduler-cleanup"

// cleared waits until nothing is left of what the runner has made before. It does not wait for that itself.
func (m *machine) cleared() {
	m.Helper()
	err := sandbox.Within(m.Context(), 5*time.Minute, func() error {
		for _, list := range []client.ObjectList{&corev1.NamespaceList{}, &kueue.ClusterQueueList{}, &kueue.ResourceFlavorList{}} {
			if err := m.admin.List(m.Context(), list, client.HasLabels{ofTheRunner}); err != nil {
				return err
			}
			if n := meta.LenList(list); n > 0 {
				return fmt.Errorf("%d are left in %T", n, list)
			}
		}
		return nil
	})
	if err != nil {
		m.Fatal(err)
	}
}

// summary is the part of the runner's that is kept.
type summary struct {
	WorkloadClasses map[string]struct {
		Count                    int `json:"count"`
		AverageTimeToAdmissionMs int `json:"averageTimeToAdmissionMs"`
	} `json:"workloadClasses"`
}

// workloads lets the runner make its objects, play the jobs, and remove its objects.
func (m *machine) workloads(program string) bench.WorkloadsTurn {
	m.Helper()
	dir := m.TempDir()
	cpu := m.processes.seconds(m.T)
	begin := time.Now()
	output := &bytes.Buffer{}
	cmd := exec.CommandContext(m.Context(), program, "-o="+dir, "-generatorConfig=testdata/workloads.yaml", "-timeout=10m", "-qps=1000", "-burst=2000", "-zap-log-level=error")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(m.processes.cluster, "kubeconfig"))
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		m.Fatalf("Kueue's runner failed: %v\n%s", err, output)
	}
	took := time.Since(begin).Seconds()
	var s summary
	text, err := os.ReadFile(filepath.Join(dir, "summary.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &s)
	}
	if err != nil {
		m.Fatal(err)
	}
	turn := bench.WorkloadsTurn{Admitted: map[string]float64{}, CPU: map[string]float64{}}
	for class, of := range s.WorkloadClasses {
		turn.Number += of.Count
		turn.Admitted[class] = float64(of.AverageTimeToAdmissionMs)
	}
	turn.PerSecond = float64(turn.Number) / took
	for process, seconds := range m.processes.seconds(m.T) {
		turn.CPU[process] = 1000 * (seconds - cpu[process]) / float64(turn.Number)
	}
	return turn
}
