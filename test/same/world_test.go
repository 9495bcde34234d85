// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package same_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/same/kubelet"
	"github.com/mlbatch/mlbatch/test/same/transcript"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

const (
	// nodes is enough for all pods at a time.
	nodes = 30
	queue = "same"
)

// world is the cluster, and the transcripts of what runs on it, by namespaces.
type world struct {
	t       *testing.T
	admin   client.WithWatch
	nodes   *kubelet.Nodes
	mu      sync.Mutex
	records map[string]*transcript.Transcript
	// attempts are the causes that ended attempts of an AppWrapper, by namespaces; causes are all that the page has.
	attempts map[string][]string
	causes   []string
}

// start starts a cluster with all operators.
func start(t *testing.T) *world {
	t.Helper()
	values := sandbox.Values(t, filepath.Join("..", "e2e", "testdata", "platform.yaml"))
	admin, cluster := sandbox.StartEveryPart(t, "same", 26711, -1, values)
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, admin: admin, records: map[string]*transcript.Transcript{}, attempts: map[string][]string{}, causes: documented(t)}
	if w.nodes, err = kubelet.Start(t.Context(), api, nodes); err != nil {
		t.Fatal(err)
	}
	w.prepareQueue()
	w.follow(dynamic.NewForConfigOrDie(config))
	return w
}

// prepareQueue makes a queue for which nobody has to wait.
func (w *world) prepareQueue() {
	w.t.Helper()
	sandbox.Create(w.t, w.admin, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: queue}})
	group := kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: queue}}}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu"} {
		group.CoveredResources = append(group.CoveredResources, name)
		group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.ResourceQuota{Name: name, NominalQuota: resource.MustParse("1P")})
	}
	sandbox.Create(w.t, w.admin, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []kueue.ResourceGroup{group},
	}})
}

// watched are the kinds of objects. Only those at the top are in a transcript.
var watched = []schema.GroupVersionResource{
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Version: "v1", Resource: "replicasets"}, {Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"},
	{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}, {Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"},
	{Group: "kubeflow.org", Version: "v1", Resource: "xgboostjobs"}, {Group: "kubeflow.org", Version: "v1", Resource: "paddlejobs"},
	{Group: "kubeflow.org", Version: "v1", Resource: "jaxjobs"}, {Group: "kubeflow.org", Version: "v1", Resource: "mpijobs"},
	{Group: "ray.io", Version: "v1", Resource: "rayclusters"}, {Group: "ray.io", Version: "v1", Resource: "rayjobs"},
	{Group: "ray.io", Version: "v1", Resource: "rayservices"},
}

// follow writes transcripts, and tells the nodes of their pods.
func (w *world) follow(api dynamic.Interface) {
	w.t.Helper()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(api, 0)
	for _, kind := range watched {
		see := func(object any, gone bool) {
			if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = last.Obj
			}
			o := object.(*unstructured.Unstructured)
			if owner := metav1.GetControllerOf(o); owner == nil || owner.Kind == workload.AppWrapperKind {
				w.record(o.GetNamespace(), func(t *transcript.Transcript) { t.Object(o, gone, time.Now()) })
			}
		}
		if _, err := factory.ForResource(kind).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { see(o, false) }, UpdateFunc: func(_, o any) { see(o, false) }, DeleteFunc: func(o any) { see(o, true) },
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	factory.Start(w.t.Context().Done())
	factory.WaitForCacheSync(w.t.Context().Done())
	sandbox.Follow(w.t, w.admin, &corev1.PodList{}, func(pod *corev1.Pod, gone bool) {
		w.record(pod.Namespace, func(t *transcript.Transcript) { t.Pod(pod, gone, time.Now()) })
		w.nodes.See(w.t.Context(), pod, gone)
	})
	sandbox.Follow(w.t, w.admin, &workload.AppWrapperList{}, func(aw *workload.AppWrapper, gone bool) {
		if !gone {
			w.record(aw.Namespace, func(t *transcript.Transcript) {
				t.Wrapper(stateOf(aw), reasonOf(aw), time.Now())
				w.attempts[aw.Namespace] = causesOf(aw)
			})
		}
	})
}

// documented are the causes in docs/lifecycle.md.
func documented(t *testing.T) (causes []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "lifecycle.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(page), "\n## Causes\n")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for line := range strings.Lines(rows) {
		if name, found := strings.CutPrefix(line, "| `"); found {
			name, _, _ = strings.Cut(name, "`")
			causes = append(causes, name)
		}
	}
	return causes
}

// causesOf are why attempts of an AppWrapper ended.
func causesOf(aw *workload.AppWrapper) (causes []string) {
	for _, attempt := range aw.Status.LastAttempts {
		causes = append(causes, attempt.Cause)
	}
	return causes
}

// record adds to the transcript of a namespace.
func (w *world) record(namespace string, add func(*transcript.Transcript)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.records[namespace]; t != nil {
		add(t)
	}
}

// stateOf is the phase, and whether all pods are ready.
func stateOf(aw *workload.AppWrapper) string {
	if meta.IsStatusConditionTrue(aw.Status.Conditions, string(workload.PodsReady)) && aw.Status.Phase == workload.AppWrapperRunning {
		return string(aw.Status.Phase) + ", PodsReady"
	}
	return string(aw.Status.Phase)
}

// reasonOf is what the AppWrapper says of its health.
func reasonOf(aw *workload.AppWrapper) string {
	var said []string
	for _, c := range aw.Status.Conditions {
		if c.Type == string(workload.Unhealthy) && c.Status == metav1.ConditionTrue {
			said = append(said, "("+c.Reason+": "+c.Message+")")
		}
	}
	return strings.Join(said, " ")
}
