// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package takeover_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/upstream"
)

// configuration is one file for both controllers. Pauses and most grace periods are too long to
// end during the test.
const configuration = `appwrapper:
  autopilot: {injectAntiAffinities: false, monitorNodes: false}
  userRBACAdmissionCheck: false
  faultTolerance:
    admissionGracePeriod: 3600000000000
    warmupGracePeriod: 3600000000000
    failureGracePeriod: 60000000000
    resetPause: 3600000000000
    retryLimit: 3
    deletionGracePeriod: 3600000000000
    gracePeriodCeiling: 86400000000000
    successTTLCeiling: 604800000000000
controllerManager:
  metrics: {bindAddress: "0"}
  health: {bindAddress: "localhost:0"}
  leaderElection: true
webhooksEnabled: false
`

// Each controller has a namespace of its own, as in two installations.
const theirNamespace, ourNamespace = upstream.Namespace, "mlbatch-system"

// controller is a running process.
type controller struct {
	cmd *exec.Cmd
	log string
}

func (s *site) startTheirs(t *testing.T) *controller {
	t.Helper()
	return s.start(t, "upstream", upstream.Command(s.theirs, s.kubeconfig))
}

func (s *site) startOurs(t *testing.T) *controller {
	t.Helper()
	file := filepath.Join(s.dir, "config.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(s.ours, "--config="+file, "--kubeconfig="+s.kubeconfig)
	cmd.Env = append(os.Environ(), "NAMESPACE="+ourNamespace)
	return s.start(t, "ours", cmd)
}

func (s *site) start(t *testing.T, name string, cmd *exec.Cmd) *controller {
	t.Helper()
	log, err := os.CreateTemp(s.dir, name+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &controller{cmd: cmd, log: log.Name()}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(c.log)
			t.Logf("%s\n%s", c.log, text)
		}
		if cmd.ProcessState == nil {
			c.end(t, syscall.SIGKILL)
		}
	})
	return c
}

// end waits until the process has ended.
func (c *controller) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(signal); err != nil {
		t.Fatalf("%s: %v", c.log, err)
	}
	_ = c.cmd.Wait() // the error is expected after a signal
}

// prepare creates the namespaces, upstream's configuration and the CRD.
func (s *site) prepare(t *testing.T) {
	t.Helper()
	for _, name := range []string{theirNamespace, ourNamespace, open, full} {
		s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	s.create(t, upstream.Configuration(configuration))
	s.create(t, definition(t, true))
	await(t, "AppWrappers are served", func() error { return s.client.List(t.Context(), &workload.AppWrapperList{}) })
}

func (s *site) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := s.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// definition returns our CRD, or v1.2.2's, which is the same without our additions.
func definition(t *testing.T, withoutAdditions bool) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../../charts/appwrapper/files/crds/workload.codeflare.dev_appwrappers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		t.Fatal(err)
	}
	if !withoutAdditions {
		return crd
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	status := []string{"schema", "openAPIV3Schema", "properties", "status", "properties"}
	known := map[string]bool{"phase": true, "resettingCount": true, "conditions": true, "componentStatus": true}
	properties, _, err := unstructured.NestedMap(versions[0].(map[string]any), status...)
	if err != nil {
		t.Fatal(err)
	}
	for name := range properties {
		if !known[name] {
			delete(properties, name)
		}
	}
	if err := unstructured.SetNestedMap(versions[0].(map[string]any), properties, status...); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	return crd
}

// upgrade changes the CRD as helm upgrade does.
func (s *site) upgrade(t *testing.T) {
	t.Helper()
	ours, old := definition(t, false), definition(t, true)
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatal(err)
	}
	ours.SetResourceVersion(old.GetResourceVersion())
	if err := s.client.Update(t.Context(), ours); err != nil {
		t.Fatal(fmt.Errorf("cannot upgrade the definition: %w", err))
	}
}
