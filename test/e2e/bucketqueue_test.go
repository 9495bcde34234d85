// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/queue"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
)

// The tasks of this queue are in a bucket, and a member adds them while it runs: some before a worker
// and the broker are killed, some after. One task fails, which is as many as may.
func TestAnOpenQueueInABucketSurvivesItsPods(t *testing.T) {
	testenv.Test(t, features.New("open work queue").Assess("each task has one result", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods, needs.Buckets, needs.Runs, needs.Machine)
		q := openQueue{s, "sevens", s.command(ctx, "ruth"), t.TempDir()}
		s.bucket(ctx, "numbers", "sevens/2026")
		app := s.program("multiply", "multiply() { sleep 0.5; test $CODEFLARE_TASK != bad || exit 3; echo $(($(cat \"$1\") * 7)) >\"$2\"; }\nmultiply")
		app.Spec.API, app.Spec.WorkQueue = v1alpha1.APIWorkQueue, &v1alpha1.WorkQueue{LeaseSeconds: 10, MaxAttempts: 4}
		s.create(ctx, app)
		run := execution(q.run, "multiply", "50m")
		*run.Spec.Workers = 3
		run.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: "numbers"}, Open: true, MaxFailed: 1}
		s.create(ctx, run)
		s.untilRun(ctx, run, v1alpha1.RunRunning)

		q.until(ctx, "it waits for tasks", func(stat queue.Stat) bool { return stat.Open && !stat.Drained && !stat.Closed })
		q.add(ctx, 0, 60, "bad")
		q.until(ctx, "some tasks are done", func(stat queue.Stat) bool { return stat.Done >= 5 })
		s.killRole(ctx, run.Name, "worker")
		q.until(ctx, "more tasks are done", func(stat queue.Stat) bool { return stat.Done >= 15 })
		s.killRole(ctx, run.Name, "broker")
		q.until(ctx, "another broker answers", func(stat queue.Stat) bool { return stat.Done >= 15 })
		q.add(ctx, 60, 80)
		q.drain(ctx)
		s.untilRun(ctx, run, v1alpha1.RunSucceeded)

		if c := run.Status.Queue; c == nil || c.Succeeded != 80 || c.Failed != 1 || run.Status.Retries != 0 {
			t.Errorf("after %d retries, the counts of the queue are %+v", run.Status.Retries, c)
		}
		if said, err := q.mlbatch(ctx, "queue", "ls", q.run); err == nil || !strings.Contains(said, "Run sevens is Succeeded: its queue answers only while it runs, and its results are in outbox of DataSet numbers") {
			t.Errorf("ls of a queue that has ended says %q", said)
		}
		s.hasMultiplied(ctx, "numbers", 80)
		return ctx
	}).Feature())
}

// openQueue is what a member does with the queue of a Run.
type openQueue struct {
	*story
	run     string
	mlbatch func(ctx context.Context, args ...string) (string, error)
	files   string
}

// command is mlbatch in the namespace of the story, with the rights of a user.
func (s *story) command(ctx context.Context, user string) func(ctx context.Context, args ...string) (string, error) {
	s.t.Helper()
	dir := s.t.TempDir()
	if err := (compiler.Program{Dir: site.Checkout, Packages: []string{"./tools/mlbatch"}}).Compile(ctx, filepath.Join(dir, "mlbatch")); err != nil {
		s.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(site.Cluster.KubeconfigPath())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, who := range config.AuthInfos {
		who.Impersonate, who.ImpersonateGroups = user, []string{"system:authenticated"}
	}
	if err := clientcmd.WriteToFile(*config, filepath.Join(dir, "kubeconfig")); err != nil {
		s.t.Fatal(err)
	}
	return func(ctx context.Context, args ...string) (string, error) {
		ctx, cancel := patience.Context(ctx)
		defer cancel()
		command := exec.CommandContext(ctx, filepath.Join(dir, "mlbatch"), slices.Concat(args, []string{"--namespace", s.namespace})...) //nolint:gosec // It was built a moment ago.
		command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"))
		said, err := command.CombinedOutput()
		return string(said), err
	}
}

// bucket makes a server, and a DataSet below a prefix of its bucket.
func (s *story) bucket(ctx context.Context, name, prefix string) {
	s.t.Helper()
	s.create(ctx, &v1alpha1.DataSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.DataSetSpec{S3: &v1alpha1.S3Source{
		Endpoint: s.serveBucket(ctx, name), Bucket: "pictures", Prefix: prefix, SecretName: name,
	}}})
}

// serveBucket starts a server, makes a Secret for it, and returns its URL.
func (s *story) serveBucket(ctx context.Context, secret string) string {
	s.t.Helper()
	server := s3Server("s3", "admin", "correct")
	s.create(ctx, server)
	s.untilReady(ctx, server)
	s.create(ctx, secretOf(secret, map[string]string{"accessKeyID": "admin", "secretAccessKey": "correct"}))
	return "http://s3." + s.namespace + ".svc:7070"
}

// until asks until the queue is as it shall be. While there is no broker, nobody answers.
func (q openQueue) until(ctx context.Context, what string, is func(queue.Stat) bool) {
	q.t.Helper()
	q.story.until(ctx, what, func(ctx context.Context) (string, error) {
		said, err := q.mlbatch(ctx, "queue", "ls", q.run, "--output", "json")
		var stat queue.Stat
		if err != nil || json.Unmarshal([]byte(said), &stat) != nil || !is(stat) {
			return fmt.Sprintf("ls says %.300s", said), nil
		}
		return "", nil
	})
}

// add makes tasks of numbers, and others without one. No task is added twice.
func (q openQueue) add(ctx context.Context, first, end int, others ...string) {
	q.t.Helper()
	args := []string{"queue", "add", q.run}
	for i := first; i < end; i++ {
		others = append(others, fmt.Sprint(i))
	}
	for _, name := range others {
		file := filepath.Join(q.files, name)
		if err := os.WriteFile(file, []byte(name+"\n"), 0o600); err != nil {
			q.t.Fatal(err)
		}
		args = append(args, file)
	}
	if said, err := q.mlbatch(ctx, args...); err != nil || strings.Count(said, " was added to Run "+q.run+"\n") != len(others) {
		q.t.Fatalf("add says %v: %s", err, said)
	}
	if said, err := q.mlbatch(ctx, "queue", "add", q.run, args[3]); err == nil || !strings.Contains(said, "there is a task of this name") {
		q.t.Errorf("a task that is added again: %v: %s", err, said)
	}
}

// drain closes the queue: no task can be added then.
func (q openQueue) drain(ctx context.Context) {
	q.t.Helper()
	if said, err := q.mlbatch(ctx, "queue", "drain", q.run); err != nil {
		q.t.Fatalf("drain says %v: %s", err, said)
	}
	late := filepath.Join(q.files, "late")
	if err := os.WriteFile(late, nil, 0o600); err != nil {
		q.t.Fatal(err)
	}
	if said, err := q.mlbatch(ctx, "queue", "add", q.run, late); err == nil || !strings.Contains(said, "the queue takes no more tasks") {
		q.t.Errorf("a task that comes too late: %v: %s", err, said)
	}
}

// hasMultiplied looks at the bucket with another Run.
func (s *story) hasMultiplied(ctx context.Context, dataSet string, results int) {
	s.t.Helper()
	app := s.program("reader", fmt.Sprintf(`cd /mnt/datasets/%s && i=0
while [ $i -lt %[2]d ]; do
	test "$(cat outbox/$i)" = $((i * 7)) || { echo the result of $i is wrong; exit 1; }
	i=$((i + 1))
done
cd .mlbatch-queue/sevens-* && set -- $(ls ../../outbox | wc -l) $(ls done | wc -l) $(ls epoch | wc -l) $(ls dead)
echo "$*" && test "$*" = "%[2]d %[2]d 2 bad"`, dataSet, results))
	app.Spec.Inputs = []v1alpha1.Input{{Name: dataSet}}
	s.create(ctx, app)
	run := execution("reader", "reader", "100m")
	run.Annotations = map[string]string{workload.RetryLimitAnnotation: "0"}
	s.create(ctx, run)
	s.untilRun(ctx, run, v1alpha1.RunSucceeded)
}
