// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const controllerNamespace = "mlbatch-system"

func controllerProgram() string { return filepath.Join(root, "controller") }

// settings disables webhooks, which nothing calls here, and all listening ports.
const settings = `
webhooksEnabled: false
appwrapper: {faultTolerance: {resetPause: 1s, admissionGracePeriod: 5m, warmupGracePeriod: 10m, failureGracePeriod: 5m}}
controllerManager: {leaderElection: true, metrics: {bindAddress: "0"}, health: {bindAddress: "0"}}
`

// controller is a process of the real controller that reaches the API server through a proxy.
type controller struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	err   error         // the result of Wait
}

// startController starts a controller and stops it at the end of the test.
func startController(t *testing.T, name string, way *proxy) *controller {
	t.Helper()
	dir := filepath.Join(root, t.Name())
	kubeconfig, file := filepath.Join(dir, name+".kubeconfig"), filepath.Join(dir, name+".yaml")
	access := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "%s"}}]}`, way.URL)
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(kubeconfig, []byte(access), 0o600), os.WriteFile(file, []byte(settings), 0o600))
	log, err2 := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	c := &controller{name: name, ended: make(chan struct{})}
	c.cmd = exec.Command(controllerProgram(), "--config="+file, "--zap-log-level=1")
	c.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "NAMESPACE="+controllerNamespace)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		defer log.Close()
		c.err = c.cmd.Wait()
	}()
	t.Cleanup(func() { c.tell(syscall.SIGTERM) })
	return c
}

// keepController restarts the controller when it exits, as a kubelet does.
func keepController(t *testing.T, way *proxy) {
	t.Helper()
	awaitNoLeader(t)
	c := startController(t, "controller", way)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	go func() {
		for starts := 1; ; starts++ {
			select {
			case <-over:
				return
			case <-c.ended:
				t.Logf("start %d of the controller has ended: %v", starts, c.err)
				c = startController(t, "controller", way)
			}
		}
	}()
}

// tell sends a signal and waits until the process has ended.
func (c *controller) tell(signal os.Signal) {
	_ = c.cmd.Process.Signal(signal) // it may have ended already
	<-c.ended
}

func (c *controller) kill() { c.tell(syscall.SIGKILL) }

// leader returns the holder of the lease, or "" if nobody holds it.
func leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := admin.Get(ctx, client.ObjectKey{Namespace: controllerNamespace, Name: "f134c674.codeflare.dev"}, lease)
	if client.IgnoreNotFound(err) != nil || lease.Spec.HolderIdentity == nil {
		return "", client.IgnoreNotFound(err)
	}
	if last := lease.Spec.RenewTime; last == nil || time.Since(last.Time) > time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second {
		return "", nil // left by an earlier test
	}
	return *lease.Spec.HolderIdentity, nil
}

// awaitNoLeader waits until the lease of an earlier test has expired.
func awaitNoLeader(t *testing.T) {
	t.Helper()
	await(t, "nobody leads", func(ctx context.Context) error {
		name, err := leader(ctx)
		if err == nil && name != "" {
			err = fmt.Errorf("the leader is %q", name)
		}
		return err
	})
}

// awaitLeader waits for a leader other than before.
func awaitLeader(t *testing.T, before string) (name string) {
	t.Helper()
	await(t, "another controller leads", func(ctx context.Context) (err error) {
		if name, err = leader(ctx); err == nil && (name == "" || name == before) {
			err = fmt.Errorf("the leader is %q", name)
		}
		return err
	})
	return name
}
