// SPDX-License-Identifier: Apache-2.0

package ray

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

func TestBothImagesHaveTheSameProgram(t *testing.T) {
	dir := t.TempDir()
	cache := components.Cache{Dir: filepath.Join(dir, "cache"), Checkout: "../../../.."}
	path, err := Build(t.Context(), cache, t.Output(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for reference, entrypoint := range map[string][]string{
		Image:           {"/usr/bin/ray"},
		kubectlDelivery: {"/bin/bash", "-c", "--", "true"},
	} {
		tag, err := name.NewTag(reference)
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(path, &tag)
		if err != nil {
			t.Fatalf("%s: %v", reference, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entrypoint, config.Config.Entrypoint); diff != "" {
			t.Errorf("%s (-want +got)\n%s", reference, diff)
		}
	}
}
