// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/patience"
)

// asAgent makes the test program the agent.
const asAgent = "MLBATCH_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// started is a process of the agent.
func started(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), asAgent+"=1")
	command.Stdout, command.Stderr = t.Output(), t.Output()
	return command
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// The processes of a queue: a worker and the broker are killed, and each of 200 tasks has the right
// result, once.
func TestAQueueOfProcesses(t *testing.T) {
	const tasks, workers = 200, 8
	folder, address := t.TempDir(), freeAddress(t)
	if err := os.Mkdir(filepath.Join(folder, "inbox"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		if err := os.WriteFile(filepath.Join(folder, "inbox", fmt.Sprintf("task %d", i)), fmt.Appendf(nil, "%d", i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	startBroker := func() *exec.Cmd {
		broker := started(t, "broker", "--listen="+address, "--run=r", "--uid=01234567", "--folder="+folder, "--lease=2s")
		if err := broker.Start(); err != nil {
			t.Fatal(err)
		}
		return broker
	}
	startWorker := func(name string) *exec.Cmd {
		worker := started(t, "work", "--name="+name, "--work="+t.TempDir())
		worker.Env = append(worker.Env, "CODEFLARE_QUEUE=http://"+address,
			`CODEFLARE_COMMAND=f() { sleep 0.05; echo "$(($(cat "$1") * 2))" > "$2"; }; f`)
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		return worker
	}
	broker := startBroker()
	var all []*exec.Cmd
	for i := range workers {
		all = append(all, startWorker(fmt.Sprint("worker-", i)))
	}
	awaitResults(t, folder, 20)
	_ = all[0].Process.Kill()
	_ = all[0].Wait()
	awaitResults(t, folder, 60)
	_ = broker.Process.Kill()
	_ = broker.Wait()
	broker = startBroker()
	for _, worker := range all[1:] {
		if err := worker.Wait(); err != nil {
			t.Error("a worker:", err)
		}
	}
	// The worker that was killed is not there to say bye, and the second broker has not seen it.
	if err := broker.Wait(); err != nil {
		t.Error("the broker:", err)
	}
	for i := range tasks {
		text, err := os.ReadFile(filepath.Join(folder, "outbox", fmt.Sprintf("task%%20%d", i)))
		if strings.TrimSpace(string(text)) != fmt.Sprint(2*i) {
			t.Errorf("task %d has the result %q: %v", i, text, err)
		}
	}
	for name, want := range map[string]int{"done": tasks, "dead": 0, "epoch": 2} {
		found, _ := os.ReadDir(filepath.Join(folder, ".mlbatch-queue", "r-01234567", name))
		if len(found) != want {
			t.Errorf("%s has %d files, not %d", name, len(found), want)
		}
	}
	closed, err := os.ReadFile(filepath.Join(folder, ".mlbatch-queue", "r-01234567", "closed"))
	if want := `{"succeeded":200,"failed":0}`; string(closed) != want {
		t.Errorf("closed says %q, not %q: %v", closed, want, err)
	}
}

func awaitResults(t *testing.T, folder string, count int) {
	t.Helper()
	for end := time.Now().Add(patience.For(time.Minute)); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if found, _ := os.ReadDir(filepath.Join(folder, "outbox")); len(found) >= count {
			return
		}
	}
	t.Fatalf("there are fewer than %d results after a minute of a quiet machine", count)
}

// By its exit code a Job knows whether it is of use to start a broker again.
func TestHowProcessesOfAQueueEnd(t *testing.T) {
	folder, address := t.TempDir(), freeAddress(t)
	if err := os.Mkdir(filepath.Join(folder, "inbox"), 0o755); err != nil {
		t.Fatal(err)
	}
	broker := func(more ...string) *exec.Cmd {
		return started(t, append([]string{"broker", "--run=r", "--uid=01234567", "--folder=" + folder}, more...)...)
	}
	work := func(line string) *exec.Cmd {
		worker := started(t, "work", "--work="+t.TempDir())
		worker.Env = append(worker.Env, "CODEFLARE_QUEUE=http://"+address, "CODEFLARE_COMMAND="+line)
		return worker
	}
	first, stopped := broker("--listen="+address, "--open"), work("sleep 100;")
	for _, process := range []*exec.Cmd{first, stopped} {
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the worker has a task", func() bool {
		// Both are asked again until they are there.
		answer, err := http.Post("http://"+address+"/v1/tasks/a", "text/plain", strings.NewReader("a"))
		if err != nil {
			return false
		}
		answer.Body.Close()
		if answer, err = http.Get("http://" + address + "/v1/stat"); err != nil {
			return false
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return strings.Contains(string(text), `"leased":1`)
	})
	if err := stopped.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a worker that was told to end", stopped.Wait(), 1)
	later := broker("--listen=127.0.0.1:0", "--open")
	if err := later.Start(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a broker that another one has replaced", first.Wait(), 66)
	if err := later.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a broker that was told to end", later.Wait(), 1)
	wantCode(t, "a broker whose store cannot be one", broker("--inbox=outbox").Run(), 65)
	wantCode(t, "a worker without a queue", started(t, "work").Run(), 1)
	failing := broker("--listen="+address, "--max-attempts=1", "--lease=2s")
	if err := failing.Start(); err != nil {
		t.Fatal(err)
	}
	if err := work("false").Run(); err != nil {
		t.Error("a worker whose task failed:", err)
	}
	wantCode(t, "a broker whose tasks fail", failing.Wait(), 65)
}

func wantCode(t *testing.T, what string, err error, want int) {
	t.Helper()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != want {
		t.Errorf("%s ends with %v, not with exit code %d", what, err, want)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience.For(time.Minute)); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after a minute of a quiet machine", what)
		}
	}
}
