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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

// shipped are the modules whose samples run, and where these are. They are read from Go's module cache. pinnedBy is the
// module of components whose go.mod has the version; without one it is the go.mod of this repository.
var shipped = []struct {
	short, pinnedBy, module string
	folders                 []string
}{
	{"kuberay", "", "github.com/ray-project/kuberay/ray-operator", []string{"config/samples"}},
	{"training", "", "github.com/kubeflow/training-operator", []string{"examples"}},
	{"lws", "", "sigs.k8s.io/lws", []string{"config/samples", "docs/examples"}},
	{"jobset", "", "sigs.k8s.io/jobset", []string{"config/samples"}},
	{"kueue", "", "sigs.k8s.io/kueue", []string{"cmd/kueueviz/examples", "test/performance/e2e/jobs"}},
	{"appwrapper", "upstream", "github.com/project-codeflare/appwrapper", []string{"samples"}},
	{"mpi", "kueue", "github.com/kubeflow/mpi-operator", []string{"examples"}},
	{"kubernetes", "kubernetes", "k8s.io/kubernetes", []string{"test/e2e/testing-manifests/statefulset"}},
}

// makers are the kinds that make pods. Objects of other kinds are left out.
var makers = []string{
	"Deployment", "Job", "JobSet", "LeaderWorkerSet", "StatefulSet", "Pod", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob",
	"JAXJob", "MPIJob", "RayCluster", "RayJob", "RayService", "RayCronJob", "DisaggregatedSet",
}

// Samples are the objects that the pinned modules ship, scaled.
func Samples(ctx context.Context) (all []Case, err error) {
	checkout, err := components.Source(ctx, ".", "github.com/mlbatch/mlbatch")
	if err != nil {
		return nil, err
	}
	for _, s := range shipped {
		folder := checkout
		if s.pinnedBy != "" {
			folder = components.Module(checkout, s.pinnedBy)
		}
		out, err := components.Source(ctx, folder, s.module)
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
		for i, o := range unwrapped(objects) {
			if slices.Contains(makers, o.GetKind()) {
				Scale(o)
				all = append(all, Case{Name: sampleName(module, relative, i), What: module + ": " + relative, Sample: true, Object: o})
			}
		}
		return err
	})
	return all, err
}

// unwrapped has the components of AppWrappers instead of these.
func unwrapped(objects []*unstructured.Unstructured) (all []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetKind() != "AppWrapper" {
			all = append(all, o)
			continue
		}
		components, _, _ := unstructured.NestedSlice(o.Object, "spec", "components")
		for _, c := range components {
			if template, found, _ := unstructured.NestedMap(c.(map[string]any), "template"); found {
				all = append(all, &unstructured.Unstructured{Object: template})
			}
		}
	}
	return all
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
