// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package airgap_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/workload"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/images"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// local are the images of every local cluster: its sandbox, its DNS, and the programs of users.
const local = "images.local/"

func TestThePlatformNeedsOneRegistry(t *testing.T) {
	s := newSite(t)
	world, company := newInternet(t), newCompany(t, s.cluster)
	all := s.published(world)
	s.mirrored(world)
	world.proxy.Close()
	s.wantAPassword()
	if loaded := s.imagesOnTheNode(); len(loaded) > 0 {
		t.Fatalf("the node has images before the installation: %q", loaded)
	}
	s.Must(s.admin.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform.Namespace}}))
	s.logInto(platform.Namespace)
	s.mlbatch(nil, append([]string{
		"install", "--kubeconfig=" + s.cluster.KubeconfigPath(), "--values=mirror.yaml", "--teams=" + filepath.Join(s.checkout, "setup/teams/demo.yaml"),
	}, s.ofThePlatform()...)...)
	s.wantPodsOf(platform.Namespace, 9)
	s.logInto("blue")
	s.train()
	s.create("run.yaml")
	s.wantPulled(company, all)
}

// published fills the public registries with what the platform pulls: the images of the local cluster, and a
// stand-in for the one that is not built here. It returns all that the command lists.
func (s *site) published(world *internet) []images.Image {
	s.Helper()
	var list printing.Items[images.Image]
	s.Must(json.Unmarshal([]byte(s.mlbatch(nil, append([]string{"images", "--output=json", s.kubernetes()}, s.ofThePlatform()...)...)), &list))
	all := list.Items
	built := imagesIn(s.T, s.images)
	standIn, err := workload.Build(s.Context(), s.checkout, s.dir, runtime.GOARCH)
	s.Must(err)
	stood := []string{}
	for _, image := range all {
		content, found := built[image.Reference]
		if !found {
			content = imagesIn(s.T, standIn)[workload.Image]
			stood = append(stood, image.Reference)
		}
		world.publish(s.T, image.Reference, content)
	}
	if len(stood) != 1 || !strings.HasPrefix(stood[0], "docker.io/library/alpine:") {
		s.Errorf("stand-ins for %q, want one for the init container of PyTorchJobs", stood)
	}
	if diff := cmp.Diff(publicRegistries, world.hosts()); diff != "" {
		s.Errorf("registries of the platform (-want +got)\n%s", diff)
	}
	return all
}

func (s *site) kubernetes() string {
	s.Helper()
	versions, err := s.cluster.Versions()
	s.Must(err)
	return "--kube-version=" + setup.Minor(versions.LocalCluster.Kubernetes)
}

// mirrored copies the images to the company's registry, and keeps the values in mirror.yaml.
func (s *site) mirrored(world *internet) {
	s.Helper()
	values := s.mlbatch(append(world.environment(), loggedIn(s.T)...),
		append([]string{"images", s.kubernetes(), "--mirror=" + companyFolder, "--pull-secret=company"}, s.ofThePlatform()...)...)
	s.Must(os.WriteFile(filepath.Join(s.dir, "mirror.yaml"), []byte(values), 0o600))
	if diff := cmp.Diff(publicRegistries, world.hosts()); diff != "" {
		s.Errorf("registries that were copied from (-want +got)\n%s", diff)
	}
}

// wantAPassword checks that the registry gives nothing without it.
func (s *site) wantAPassword() {
	s.Helper()
	response, err := http.Get("http://" + companyAddress + "/v2/")
	s.Must(err)
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		s.Errorf("without a password, the registry answers %s", response.Status)
	}
}

// imagesOnTheNode returns the images that containerd has, but those of every local cluster.
func (s *site) imagesOnTheNode() []string {
	s.Helper()
	out, err := exec.CommandContext(s.Context(), filepath.Join(s.cluster.Dir(), "bin", "ctr"),
		"--address", filepath.Join(s.cluster.Dir(), "containerd.sock"), "--namespace", "k8s.io", "images", "list", "--quiet").Output()
	s.Must(err)
	return slices.DeleteFunc(strings.Fields(string(out)), func(reference string) bool {
		return strings.HasPrefix(reference, local) || strings.HasPrefix(reference, "sha256:")
	})
}

// logInto creates the Secret for the registry in a namespace.
func (s *site) logInto(namespace string) {
	s.Helper()
	s.Must(s.admin.Create(s.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "company"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: credentials(s.T)},
	}))
}

// wantPodsOf checks that so many pods run, and that their images are those of the registry.
func (s *site) wantPodsOf(namespace string, count int) {
	s.Helper()
	pods := &corev1.PodList{}
	s.Must(s.admin.List(s.Context(), pods, client.InNamespace(namespace)))
	if len(pods.Items) != count {
		s.Errorf("there are %d pods in %s, want %d", len(pods.Items), namespace, count)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			s.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if !strings.HasPrefix(container.Image, companyFolder+"/") {
				s.Errorf("pod %s has the image %s", pod.Name, container.Image)
			}
		}
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if !strings.HasPrefix(status.ImageID, companyFolder+"/") {
				s.Errorf("pod %s runs %s", pod.Name, status.ImageID)
			}
		}
	}
}

// train runs a PyTorchJob. The training operator adds an init container to its worker.
func (s *site) train() {
	s.Helper()
	s.create("work.yaml")
	worker := &corev1.Pod{}
	s.Await("the worker runs", func() error {
		if err := s.admin.Get(s.Context(), client.ObjectKey{Namespace: "blue", Name: "train-worker-0"}, worker); err != nil {
			return err
		}
		if worker.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s: %+v", worker.Status.Phase, worker.Status.InitContainerStatuses)
		}
		return nil
	})
	if inits := worker.Spec.InitContainers; len(inits) != 1 || !strings.HasPrefix(inits[0].Image, companyFolder+"/library/alpine:") {
		s.Errorf("the init containers of the worker are %+v", inits)
	}
}

// create creates the objects in a file of testdata.
func (s *site) create(file string) {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	s.Must(err)
	for _, document := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		s.Must(yaml.Unmarshal([]byte(document), &object.Object))
		s.Must(s.admin.Create(s.Context(), object))
	}
}

// wantPulled checks that containerd has pulled all images, and has none of another registry. That of the agent
// is pulled by a Run.
func (s *site) wantPulled(company *company, all []images.Image) {
	s.Helper()
	inRegistry, err := images.From(companyFolder, all)
	s.Must(err)
	s.Await("every image has been pulled", func() error {
		for _, image := range inRegistry {
			if !company.hasGiven(image.Reference) {
				return fmt.Errorf("the registry has not given %s (%s, %s) to the node", image.Reference, image.Part, image.Title)
			}
		}
		return nil
	})
	for _, reference := range s.imagesOnTheNode() {
		if !strings.HasPrefix(reference, companyFolder+"/") {
			s.Errorf("the node has the image %s", reference)
		}
	}
}
