// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

// shipped are the modules whose samples run, and where these are. They are read from Go's module cache.
var shipped = []struct {
	short, module string
	folders       []string
}{
	{"kuberay", "github.com/ray-project/kuberay/ray-operator", []string{"config/samples"}},
	{"training", "github.com/kubeflow/training-operator", []string{"examples"}},
	{"lws", "sigs.k8s.io/lws", []string{"config/samples", "docs/examples"}},
	{"jobset", "sigs.k8s.io/jobset", []string{"config/samples"}},
	{"kueue", "sigs.k8s.io/kueue", []string{"cmd/kueueviz/examples", "test/performance/e2e/jobs"}},
}

// makers are the kinds that make pods. Objects of other kinds are left out.
var makers = []string{
	"Deployment", "Job", "JobSet", "LeaderWorkerSet", "StatefulSet", "Pod", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob",
	"JAXJob", "MPIJob", "RayCluster", "RayJob", "RayService", "RayCronJob", "DisaggregatedSet",
}

// Samples are the objects that the pinned modules ship, scaled.
func Samples(ctx context.Context) (all []Case, err error) {
	for _, s := range shipped {
		out, err := components.Source(ctx, ".", s.module)
		if err != nil {
			return nil, err
		}
		for _, folder := range s.folders {
			cases, err := samplesIn(s.short, filepath.Join(out, folder))
			if err != nil {
				return nil, err
			}
			all = append(all, cases...)
		}
	}
	return all, nil
}

func samplesIn(module, folder string) (all []Case, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := decode(text)
		if err != nil {
			return nil //nolint:nilerr // a file of settings or a template of Helm
		}
		relative, err := filepath.Rel(folder, path)
		for i, o := range objects {
			if slices.Contains(makers, o.GetKind()) {
				Scale(o)
				all = append(all, Case{Name: sampleName(module, relative, i), What: module + ": " + relative, Sample: true, Object: o})
			}
		}
		return err
	})
	return all, err
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// sampleName is short enough for a namespace.
func sampleName(module, file string, document int) string {
	name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(file, filepath.Ext(file))), "-")
	if len(name) > 45 {
		name = name[len(name)-45:]
	}
	name = module + "-" + strings.Trim(name, "-")
	if document > 0 {
		name += fmt.Sprintf("-%d", document)
	}
	return name
}
