// SPDX-License-Identifier: Apache-2.0

package access

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Half a minute after the start, a client without a logger prints a stack among the progress.
func TestClientsAreSilent(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Cluster{Kubeconfig: kubeconfig}).Connect(); err == nil {
		t.Error("nothing listens there")
	}
	if sink := log.Log.WithName("client").GetSink(); sink != (log.NullLogSink{}) {
		t.Errorf("the logger is %T", sink)
	}
}
