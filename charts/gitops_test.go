// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"helm.sh/helm/v3/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// delivered is what a sample of samples/gitops says of a release.
type delivered struct {
	Release, Namespace, Chart, Repository, Version string
	values                                         map[string]any
}

// wantedReleases are those of 'mlbatch install', in their order.
func wantedReleases(t *testing.T) []delivered {
	t.Helper()
	v := must(versions())(t)
	var all []delivered
	for _, name := range []string{"mlbatch", "teams"} {
		all = append(all, delivered{
			Release: name, Namespace: helmrelease.DefaultNamespace, Chart: name, Repository: v.ChartRepository, Version: load(t, name).Metadata.Version,
		})
	}
	return all
}

func TestGitOpsSamplesInstallTheReleasesInTheirOrder(t *testing.T) {
	for tool, found := range map[string][]delivered{"Argo CD": byArgo(t), "Flux": byFlux(t)} {
		t.Run(tool, func(t *testing.T) {
			if diff := gocmp.Diff(wantedReleases(t), found, cmpopts.IgnoreUnexported(delivered{})); diff != "" {
				t.Fatalf("(-wanted +in the samples)\n%s", diff)
			}
			for _, d := range found {
				rendered, err := render(t, d.Chart, d.values)
				if err != nil {
					t.Fatalf("the values of %s: %v", d.Release, err)
				}
				if d.Release == "mlbatch" {
					hasEveryPart(t, rendered.Manifest)
				}
			}
		})
	}
}

// hasEveryPart checks that the values of the sample switch off no part that is on by default.
func hasEveryPart(t *testing.T, manifest string) {
	t.Helper()
	there := map[string]bool{}
	for _, o := range objects(t, manifest) {
		if o.Kind == "Deployment" {
			part, _ := parts.Of(o.Name)
			there[part.Name] = true
		}
	}
	for _, p := range parts.All {
		if there[p.Name] == p.Optional {
			t.Errorf("the part %s is rendered: %t", p.Name, there[p.Name])
		}
	}
}

// gitopsDocuments are the YAML documents of a folder of samples, each with the name of its file.
func gitopsDocuments(t *testing.T, tool string) (documents [][2]string) {
	t.Helper()
	for _, file := range must(filepath.Glob(filepath.Join("..", "samples", "gitops", tool, "*")))(t) {
		for _, text := range strings.Split(string(must(os.ReadFile(file))(t)), "\n---\n") {
			documents = append(documents, [2]string{filepath.Base(file), text})
		}
	}
	return documents
}

func kindOf(t *testing.T, text string) string {
	t.Helper()
	var object metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object.APIVersion + " " + object.Kind
}

func strictly[T any](t *testing.T, text string) (object T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// application is an Application of Argo CD, as far as the samples use it. Its own types are in one module with
// all of Argo CD and with hundreds of others.
type application struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		Project string `json:"project"`
		Source  struct {
			RepoURL        string `json:"repoURL"`
			Chart          string `json:"chart"`
			TargetRevision string `json:"targetRevision"`
			Helm           struct {
				ReleaseName  string         `json:"releaseName"`
				ValuesObject map[string]any `json:"valuesObject"`
			} `json:"helm"`
			Path      string `json:"path"`
			Directory struct {
				Exclude string `json:"exclude"`
			} `json:"directory"`
		} `json:"source"`
		Destination struct {
			Server    string `json:"server"`
			Namespace string `json:"namespace"`
		} `json:"destination"`
		SyncPolicy struct {
			Automated struct {
				Prune    bool `json:"prune"`
				SelfHeal bool `json:"selfHeal"`
			} `json:"automated"`
			SyncOptions []string `json:"syncOptions"`
			Retry       struct {
				Limit   int `json:"limit"`
				Backoff struct {
					Duration    string `json:"duration"`
					Factor      int    `json:"factor"`
					MaxDuration string `json:"maxDuration"`
				} `json:"backoff"`
			} `json:"retry"`
		} `json:"syncPolicy"`
	} `json:"spec"`
}

// byArgo are the releases of Argo CD's samples, in the order of their sync waves.
func byArgo(t *testing.T) []delivered {
	t.Helper()
	waves := map[int]delivered{}
	for _, document := range gitopsDocuments(t, "argocd") {
		file, text := document[0], document[1]
		switch kind := kindOf(t, text); kind {
		case "v1 Secret":
			isRepository(t, strictly[corev1.Secret](t, text))
		case "argoproj.io/v1alpha1 Application":
			a := strictly[application](t, text)
			if a.Metadata.Namespace != "argocd" || a.Spec.Project != "default" || a.Spec.Destination.Server != "https://kubernetes.default.svc" {
				t.Errorf("%s: it is in namespace %q and project %q, for %q", file, a.Metadata.Namespace, a.Spec.Project, a.Spec.Destination.Server)
			}
			a.isTriedAgain(t)
			if a.Spec.Source.Path != "" { // the Application of Applications
				if a.Spec.Source.Directory.Exclude != file {
					t.Errorf("%s would apply itself", file)
				}
				continue
			}
			wave := must(strconv.Atoi(a.Metadata.Annotations["argocd.argoproj.io/sync-wave"]))(t)
			if _, taken := waves[wave]; taken {
				t.Errorf("there are two Applications of wave %d", wave)
			}
			waves[wave] = a.delivers(t)
		default:
			t.Errorf("%s has a %s", file, kind)
		}
	}
	var all []delivered
	for wave := range len(waves) { // from 0 on, without gaps
		all = append(all, waves[wave])
	}
	return all
}

func (a application) delivers(t *testing.T) delivered {
	t.Helper()
	source, policy := a.Spec.Source, a.Spec.SyncPolicy
	if a.Metadata.Name != source.Helm.ReleaseName {
		t.Errorf("the Application %s is the release %s: Argo CD may label objects with the first", a.Metadata.Name, source.Helm.ReleaseName)
	}
	if !slices.Contains(policy.SyncOptions, "ServerSideApply=true") || a.Metadata.Annotations["argocd.argoproj.io/compare-options"] != "ServerSideDiff=true" {
		t.Errorf("%s is not applied and compared on the server", a.Metadata.Name)
	}
	return delivered{source.Helm.ReleaseName, a.Spec.Destination.Namespace, source.Chart, registry.OCIScheme + "://" + source.RepoURL, source.TargetRevision, source.Helm.ValuesObject}
}

// isTriedAgain checks that a failure is not the end: Argo CD does not repeat by itself what failed. Operators that
// are starting are a failure of the Application that contains theirs.
func (a application) isTriedAgain(t *testing.T) {
	t.Helper()
	retry := a.Spec.SyncPolicy.Retry
	for _, duration := range []string{retry.Backoff.Duration, retry.Backoff.MaxDuration} {
		if _, err := time.ParseDuration(duration); err != nil {
			t.Errorf("%s: %v", a.Metadata.Name, err)
		}
	}
	if retry.Limit >= 0 || retry.Backoff.Factor < 2 {
		t.Errorf("%s is not tried again until it can work", a.Metadata.Name)
	}
}

// isRepository checks the registration of the charts' registry, without which Argo CD takes it for another sort.
func isRepository(t *testing.T, secret corev1.Secret) {
	t.Helper()
	want := map[string]string{"name": "mlbatch", "type": "helm", "enableOCI": "true", "url": strings.TrimPrefix(must(versions())(t).ChartRepository, registry.OCIScheme+"://")}
	if diff := gocmp.Diff(want, secret.StringData); diff != "" || secret.Labels["argocd.argoproj.io/secret-type"] != "repository" || secret.Namespace != "argocd" {
		t.Errorf("the Secret registers no repository in namespace argocd: %s", diff)
	}
}

// The project of samples/gitops/argocd-settings allows the kinds of cluster scope that our charts have, and no others.
func TestTheProjectOfArgoCDAllowsWhatTheChartsHave(t *testing.T) {
	var project struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Spec            struct {
			Description              string             `json:"description"`
			SourceRepos              []string           `json:"sourceRepos"`
			Destinations             []map[string]any   `json:"destinations"`
			ClusterResourceWhitelist []metav1.GroupKind `json:"clusterResourceWhitelist"`
		} `json:"spec"`
	}
	text := must(os.ReadFile("../samples/gitops/argocd-settings/project.yaml"))(t)
	if err := yaml.UnmarshalStrict(text, &project); err != nil {
		t.Fatal(err)
	}
	every := values(t, must(os.ReadFile("../setup/profiles/every-part.yaml"))(t))
	manifests := []string{must(render(t, "mlbatch", every))(t).Manifest}
	for _, in := range must(filepath.Glob("testdata/teams/*.in.yaml"))(t) {
		manifests = append(manifests, must(render(t, "teams", values(t, must(os.ReadFile(in))(t))))(t).Manifest)
	}
	want := map[string]bool{}
	for _, manifest := range manifests {
		for _, o := range objects(t, manifest) {
			if o.Namespace == "" {
				want[o.GroupVersionKind().GroupKind().String()] = true
			}
		}
	}
	got := map[string]bool{}
	for _, kind := range project.Spec.ClusterResourceWhitelist {
		got[schema.GroupKind(kind).String()] = true
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("kinds of cluster scope (-in the charts +allowed)\n%s", diff)
	}
}

// byFlux are the releases of Flux' samples. Each depends on all before it.
func byFlux(t *testing.T) []delivered {
	t.Helper()
	sources, found := map[string]sourcev1.OCIRepository{}, []helmv2.HelmRelease{}
	for _, document := range gitopsDocuments(t, "flux") {
		file, text := document[0], document[1]
		conformsToFlux(t, file, text)
		switch kind := kindOf(t, text); kind {
		case "source.toolkit.fluxcd.io/v1 OCIRepository":
			source := strictly[sourcev1.OCIRepository](t, text)
			sources[source.Name] = source
		case "helm.toolkit.fluxcd.io/v2 HelmRelease":
			found = append(found, strictly[helmv2.HelmRelease](t, text))
		default:
			t.Errorf("%s has a %s", file, kind)
		}
	}
	slices.SortFunc(found, func(a, b helmv2.HelmRelease) int { return cmp.Compare(len(a.Spec.DependsOn), len(b.Spec.DependsOn)) })
	var all []delivered
	var before []helmv2.DependencyReference
	for _, release := range found {
		if diff := gocmp.Diff(before, release.Spec.DependsOn); diff != "" {
			t.Errorf("%s does not wait for the releases before it (-wanted +found)\n%s", release.Name, diff)
		}
		all = append(all, fluxDelivers(t, release, sources))
		before = append(before, helmv2.DependencyReference{Name: release.Name})
	}
	return all
}

func fluxDelivers(t *testing.T, r helmv2.HelmRelease, sources map[string]sourcev1.OCIRepository) delivered {
	t.Helper()
	source, there := sources[r.Spec.ChartRef.Name]
	if !there || r.Spec.ChartRef.Kind != source.Kind || r.Namespace != source.Namespace || r.Spec.ChartRef.Namespace != "" {
		t.Fatalf("%s has no source", r.Name)
	}
	if layer := source.Spec.LayerSelector; layer.MediaType != registry.ChartLayerMediaType || layer.Operation != sourcev1.OCILayerCopy {
		t.Errorf("%s: the layer %s, %s is no chart", source.Name, layer.MediaType, layer.Operation)
	}
	if r.Spec.StorageNamespace != r.Spec.TargetNamespace {
		t.Errorf("%s: Helm's records are in another namespace than those of mlbatch and helm", r.Name)
	}
	if first := len(r.Spec.DependsOn) == 0; r.Spec.Install.CreateNamespace != first {
		t.Errorf("%s creates the namespace: %t", r.Name, !first)
	}
	chart := filepath.Base(source.Spec.URL)
	return delivered{r.Spec.ReleaseName, r.Spec.TargetNamespace, chart, strings.TrimSuffix(source.Spec.URL, "/"+chart), source.Spec.Reference.Tag, values(t, r.Spec.Values.Raw)}
}
