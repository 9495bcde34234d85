// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	trainingwebhooks "github.com/kubeflow/training-operator/pkg/webhooks"
	ray "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/sirupsen/logrus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	jobsetcontrollers "sigs.k8s.io/jobset/pkg/controllers"
	jobsetwebhooks "sigs.k8s.io/jobset/pkg/webhooks"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	lwscontrollers "sigs.k8s.io/lws/pkg/controllers"
	lwswebhooks "sigs.k8s.io/lws/pkg/webhooks"

	"github.com/mlbatch/mlbatch/tools/artifacts/components/kueue/drawn"
)

// mostPods bounds what an operator makes, and what is compared.
const mostPods = 100

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, ray.AddToScheme, kubeflow.AddToScheme, jobset.AddToScheme, lws.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// manager is what operators need of one.
type manager struct {
	ctrl.Manager
	client client.Client
	mux    *http.ServeMux
}

func (m manager) GetClient() client.Client                        { return m.client }
func (m manager) GetAPIReader() client.Reader                     { return m.client }
func (m manager) GetScheme() *runtime.Scheme                      { return scheme }
func (m manager) GetConfig() *rest.Config                         { return &rest.Config{Host: "https://none.invalid"} }
func (m manager) GetLogger() logr.Logger                          { return logr.Discard() }
func (m manager) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }
func (m manager) GetEventRecorder(string) events.EventRecorder    { return &events.FakeRecorder{} }
func (m manager) GetFieldIndexer() client.FieldIndexer            { return noIndex{} }
func (m manager) GetWebhookServer() webhook.Server                { return hooks{mux: m.mux} }

type noIndex struct{}

func (noIndex) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

type hooks struct {
	webhook.Server
	mux *http.ServeMux
}

func (h hooks) Register(path string, hook http.Handler) { h.mux.Handle(path, hook) }
func (h hooks) WebhookMux() *http.ServeMux              { return h.mux }

// newAPIServer has the webhooks of all operators.
func newAPIServer(t *testing.T) apiServer {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	logrus.SetOutput(io.Discard)
	m := manager{client: fake.NewClientBuilder().WithScheme(scheme).Build(), mux: http.NewServeMux()}
	setups := []func(ctrl.Manager) error{jobsetwebhooks.Setup, lwswebhooks.SetupLeaderWorkerSetWebhook}
	for _, setup := range trainingwebhooks.SupportedSchemeWebhook {
		setups = append(setups, setup)
	}
	for _, setup := range setups {
		if err := setup(m); err != nil {
			t.Fatal(err)
		}
	}
	return apiServer{definitions(t), m.mux}
}

// world is a namespace with an object, and the pods that its operator makes of it.
type world struct {
	manager
	definitions map[schema.GroupVersionKind]definition
	pods        map[string]int32
	refused     bool
	made        int
}

var errMany = errors.New("that is more than a test counts")

func newWorld(object client.Object, definitions map[schema.GroupVersionKind]definition) *world {
	w := &world{definitions: definitions, pods: map[string]int32{}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).
		WithStatusSubresource(&ray.RayCluster{}, &ray.RayJob{}, &ray.RayService{}, &jobset.JobSet{}, &lws.LeaderWorkerSet{}, &batchv1.Job{}, &appsv1.StatefulSet{})
	w.must(jobsetcontrollers.SetupJobSetIndexes(context.Background(), indexer{builder}))
	w.must(lwscontrollers.SetupIndexes(indexer{builder}))
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{Create: w.create}).Build()
	return w
}

// must stops a maker.
func (w *world) must(err error) {
	if err != nil {
		panic(err)
	}
}

type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(object, field, values)
	return nil
}

// create counts pods. Kubernetes' own controller makes those of Jobs.
func (w *world) create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	w.made++
	object.SetUID(types.UID("u-" + strconv.Itoa(w.made)))
	if object.GetName() == "" {
		object.SetName(object.GetGenerateName() + strconv.Itoa(w.made))
	}
	if err := w.setDefaults(object); err != nil {
		return err
	}
	switch o := object.(type) {
	case *corev1.Pod:
		if err := w.add(o.Annotations, 1); err != nil {
			return err
		}
	case *batchv1.Job:
		if err := w.add(o.Spec.Template.Annotations, jobPods(o)); err != nil {
			return err
		}
	}
	return c.Create(ctx, object, options...)
}

// setDefaults does so as the API server: what an operator leaves out as empty comes back with its default.
func (w *world) setDefaults(object client.Object) error {
	legacyscheme.Scheme.Default(object)
	gvk, err := apiutil.GVKForObject(object, scheme)
	defined, found := w.definitions[gvk]
	if err != nil || !found {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	defaulting.Default(content, defined.structure)
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, object)
}

// add counts pods of a template.
func (w *world) add(annotations map[string]string, pods int32) error {
	w.pods[annotations[drawn.Mark]] += pods
	if w.pods[annotations[drawn.Mark]] > mostPods {
		return errMany
	}
	return nil
}

func (w *world) addStatefulSet(set *appsv1.StatefulSet) error {
	return w.add(set.Spec.Template.Annotations, *set.Spec.Replicas)
}

// jobPods is how many pods the Job controller makes at a time of a Job that an API server has stored.
func jobPods(job *batchv1.Job) int32 {
	if job.Spec.Completions != nil {
		return min(*job.Spec.Parallelism, *job.Spec.Completions)
	}
	return *job.Spec.Parallelism
}
