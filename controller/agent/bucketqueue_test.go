// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/mlbatch/mlbatch/test/s3server"
)

// The processes of an open queue in a bucket: tasks are added before a worker and the broker are
// killed, and after. One fails, which is as many as may. Each other task has one result.
func TestAnOpenQueueOfProcessesInABucket(t *testing.T) {
	server, address := s3server.Start(t), freeAddress(t)
	start := func(process *exec.Cmd, env ...string) *exec.Cmd {
		t.Helper()
		process.Env = append(process.Env, env...)
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		return process
	}
	startBroker := func() *exec.Cmd {
		return start(started(t, "broker", "--listen="+address, "--run=r", "--uid=01234567", "--lease=2s", "--open", "--max-attempts=2", "--max-failed=1",
			"--endpoint="+server.Endpoint, "--bucket="+s3server.Bucket, "--prefix=a/b/"),
			accessKeyVariable+"="+s3server.AccessKeyID, secretValueVariable+"="+s3server.SecretAccessKey)
	}
	broker := startBroker()
	var workers []*exec.Cmd
	for i := range 3 {
		workers = append(workers, start(started(t, "work", fmt.Sprint("--name=w", i), "--work="+t.TempDir()), "CODEFLARE_QUEUE=http://"+address,
			`CODEFLARE_COMMAND=f() { sleep 0.05; test $CODEFLARE_TASK != bad || exit 3; echo "$(($(cat "$1") * 7))" > "$2"; }; f`))
	}
	say := func(path, body string) int {
		answer, err := http.Post("http://"+address+path, "text/plain", strings.NewReader(body))
		if err != nil {
			return 0
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	add := func(name string) {
		t.Helper()
		await(t, "task "+name+" is there", func() bool {
			code := say("/v1/tasks/"+name, name)
			return code == http.StatusOK || code == http.StatusConflict
		})
	}
	results := func() (count int) {
		for range server.Client.ListObjectsIter(t.Context(), s3server.Bucket, minio.ListObjectsOptions{Prefix: "a/b/outbox/", Recursive: true}) {
			count++
		}
		return count
	}
	add("bad")
	for i := range 40 {
		add(fmt.Sprint(i))
	}
	await(t, "there are results", func() bool { return results() >= 5 })
	_ = workers[0].Process.Kill()
	_ = workers[0].Wait()
	await(t, "there are more results", func() bool { return results() >= 15 })
	_ = broker.Process.Kill()
	_ = broker.Wait()
	broker = startBroker()
	for i := range 10 {
		add(fmt.Sprint(40 + i))
	}
	if code := say("/v1/drain", ""); code != http.StatusOK {
		t.Error("drain is answered", code)
	}
	if code := say("/v1/tasks/late", ""); code != http.StatusGone {
		t.Error("a task that comes too late is answered", code)
	}
	for _, process := range append(workers[1:], broker) {
		if err := process.Wait(); err != nil {
			t.Error(process.Args[1:], err)
		}
	}
	judgeBucket(t, server, 50)
}

// judgeBucket looks at the results, and at what the brokers have remembered.
func judgeBucket(t *testing.T, server s3server.Server, results int) {
	t.Helper()
	found := map[string]int{}
	for object := range server.Client.ListObjectsIter(t.Context(), s3server.Bucket, minio.ListObjectsOptions{Recursive: true}) {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(object.Key, "a/b/"), ".mlbatch-queue/r-01234567/"), "/")
		found[name]++
	}
	for name, want := range map[string]int{"outbox": results, "done": results, "dead": 1, "epoch": 2, "inbox": results + 1} {
		if found[name] != want {
			t.Errorf("%s has %d objects, not %d", name, found[name], want)
		}
	}
	for i := range results {
		object, err := server.Client.GetObject(t.Context(), s3server.Bucket, fmt.Sprint("a/b/outbox/", i), minio.GetObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(object)
		if want := fmt.Sprintln(7 * i); string(text) != want || err != nil {
			t.Errorf("task %d has the result %q: %v", i, text, err)
		}
	}
}
