// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// Two teams at once: a member of one submits all samples, a member of the other applies the manifests of
// 2023. Each Run comes to its end, and one that was there before its queue.
func TestTheSamplesAndTheManifestsOf2023Run(t *testing.T) {
	testenv.Test(t, features.New("samples").Assess("each Run comes to its end", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-kinds", "kate", needs.Machine, needs.TrainingPods, needs.RayPods, needs.Buckets, needs.EveryKind)
		old := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods)
		m := sampler{s, s.command(ctx, "kate"), t.TempDir()}
		s.create(ctx, s.program("greets", "echo hello"))
		early := execution("early", "greets", "50m")
		early.Spec.QueueName = "later"
		s.create(ctx, early)
		s.claim(ctx, "letters", s.tasks(8))
		samples := m.submitAll(ctx, s.serveBucket(ctx, "pictures"))
		manifests := old.applyManifestsOf2023(ctx)

		s.untilRun(ctx, early, v1alpha1.RunQueued)
		s.queueComes(ctx, "later")
		s.untilEnds(ctx, samples)
		old.untilEnds(ctx, manifests)
		s.untilRun(ctx, early, v1alpha1.RunSucceeded)
		m.looks(ctx, samples)
		return ctx
	}).Feature())
}

// queueComes makes a LocalQueue, as an administrator does.
func (s *story) queueComes(ctx context.Context, name string) {
	s.t.Helper()
	queue := &kueue.LocalQueue{ObjectMeta: s.own(name), Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(s.queue())}}
	if err := s.admin.Create(ctx, queue); err != nil {
		s.t.Fatal(err)
	}
	s.created = append(s.created, queue)
}

// sampler is a member who uses the commands of Runs.
type sampler struct {
	*story
	mlbatch func(ctx context.Context, args ...string) (string, error)
	dir     string
}

// submitAll submits all samples, and returns what is in them.
func (m sampler) submitAll(ctx context.Context, endpoint string) []*unstructured.Unstructured {
	m.t.Helper()
	samples, err := filepath.Glob(filepath.Join("..", "..", "samples", "codeflare", "*.yaml"))
	if err != nil || len(samples) < 6 {
		m.t.Fatalf("there are %d samples: %v", len(samples), err)
	}
	var all []*unstructured.Unstructured
	for _, sample := range samples {
		text, err := os.ReadFile(sample)
		if err != nil {
			m.t.Fatal(err)
		}
		here := inSample(string(text), filepath.Base(sample), endpoint)
		objects := m.objectsIn(here)
		for _, o := range objects {
			o.SetNamespace(m.namespace)
			m.created = append(m.created, o)
		}
		file := m.file(filepath.Base(sample), here)
		m.says(ctx, "apiVersion: workload.codeflare.dev/v1beta2\n", "run", "submit", "--dry-run", file)
		m.says(ctx, " was submitted in namespace "+m.namespace+"\n", "run", "submit", file)
		all = append(all, objects...)
	}
	return all
}

// inSample is a sample with what is here: images, a bucket and less CPU. The stand-in for Ray has no
// Python, and the digits, which are trained by a PyTorchJob elsewhere, are by a JobSet.
func inSample(text, name, endpoint string) string {
	if name == "ray.yaml" {
		text = strings.ReplaceAll(text, "size: sm", "size: sm\n  resources: {cpu: 50m, memory: 64Mi}")
	}
	return strings.NewReplacer(
		needs.TrainingImage, here.Training.Name, "busybox:1.37", here.Training.Name, "rayproject/ray:2.46.0", here.Ray.Name,
		"https://s3.example.com", endpoint, "cpu: 500m", "cpu: 50m",
		`python3 -c "import ray; print(sum(ray.get([ray.remote(lambda n: n * n).remote(n) for n in range(100)])))"`, "echo 328350",
		"api: torch\n", "api: torch\n  torch: {backend: JobSet}\n",
	).Replace(text)
}

func (m sampler) file(name, text string) string {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// says fails unless a command succeeds and says something.
func (m sampler) says(ctx context.Context, want string, args ...string) {
	m.t.Helper()
	if said, err := m.mlbatch(ctx, args...); err != nil || !strings.Contains(said, want) {
		m.t.Errorf("mlbatch %s: %v: it lacks %q:\n%s", strings.Join(args, " "), err, want, said)
	}
}

// looks uses the commands that look at Runs, and cancels the one that does not end.
func (m sampler) looks(ctx context.Context, samples []*unstructured.Unstructured) {
	m.t.Helper()
	for _, run := range runsIn(samples) {
		m.says(ctx, run.Name, "run", "list")
	}
	m.says(ctx, `"event": "done"`, "run", "logs", "digits-run", "--all")
	m.says(ctx, `"worldSize": 2`, "run", "logs", "digits-run", "--worker", "1")
	m.says(ctx, "worker 1 of 2 says hello\n", "run", "logs", "hello-run", "--worker", "1")
	m.says(ctx, "evaluate of pipeline-1: the model is good\n", "run", "logs", "pipeline-1", "--step", "evaluate")
	m.says(ctx, "328350\n", "run", "logs", "squares-run")
	alone := m.file("again.yaml", "{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: again}, spec: {application: {name: digits}, size: xxs}}")
	m.says(ctx, "# Run again: 1 worker of 500m cpu, 1536Mi memory\n", "run", "plan", alone)
	m.says(ctx, "", "run", "cancel", "my-ray")
	m.untilRun(ctx, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "my-ray"}}, v1alpha1.RunCancelled)
}

// objectsIn decodes manifests.
func (s *story) objectsIn(text string) []*unstructured.Unstructured {
	s.t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	var all []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, object)
	}
}

func runsIn(objects []*unstructured.Unstructured) []*v1alpha1.Run {
	var all []*v1alpha1.Run
	for _, o := range objects {
		if o.GetKind() == v1alpha1.RunKind {
			all = append(all, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: o.GetName()}})
		}
	}
	return all
}

// untilEnds waits until all Runs have succeeded. Interactive ones run.
func (s *story) untilEnds(ctx context.Context, objects []*unstructured.Unstructured) {
	s.t.Helper()
	for _, run := range runsIn(objects) {
		end := v1alpha1.RunSucceeded
		s.until(ctx, "Run "+run.Name+" is there", func(ctx context.Context) (string, error) {
			return "", s.admin.Get(ctx, run.Name, s.namespace, run)
		})
		if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			_, has, _ := unstructured.NestedString(o.Object, "spec", "command")
			api, _, _ := unstructured.NestedString(o.Object, "spec", "api")
			return o.GetName() == run.Spec.Application.Name && api == string(v1alpha1.APIRay) && !has
		}) {
			end = v1alpha1.RunRunning
		}
		s.untilRun(ctx, run, end)
	}
}
