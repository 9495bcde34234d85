// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if found, _ := os.ReadDir(filepath.Join(folder, "outbox")); len(found) >= count {
			return
		}
	}
	t.Fatalf("there are fewer than %d results after a minute", count)
}
