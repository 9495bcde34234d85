// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"os"
	"testing"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

func TestPreflightRunsBeforeBuilds(t *testing.T) {
	var progress bytes.Buffer
	config := localcluster.Config{Checkout: "../../..", CacheDir: t.TempDir(), StateDir: "/var/lib/clusters"}
	cluster, err := localcluster.New(config, &progress)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Site{Cluster: cluster, Checkout: "../../..", Progress: &progress}.Build(t.Context())
	if os.Geteuid() == 0 {
		wording.Wanted(t, err, "/var/lib/clusters must not be below /var/lib")
	} else {
		wording.Wanted(t, err, "needs root")
	}
	if progress.Len() > 0 {
		t.Errorf("something was begun: %s", progress.String())
	}
}
