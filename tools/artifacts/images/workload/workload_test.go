// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestTheImageRunsTheProgramOfTheCheckout(t *testing.T) {
	path, err := Build(t.Context(), "../../../..", t.TempDir(), runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/workload"}, config.Config.Entrypoint); diff != "" {
		t.Error(diff)
	}
}

func TestACheckoutWithoutTheProgramIsNamed(t *testing.T) {
	if _, err := Build(t.Context(), t.TempDir(), t.TempDir(), "amd64"); err == nil || !strings.Contains(err.Error(), "cannot build ./test/workload for linux/amd64") {
		t.Errorf("got %v", err)
	}
}
