// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mlbatch/mlbatch/test/fakecluster"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// apiServer serves the kinds of the probes, and passes creations to create.
func apiServer(t *testing.T, create http.HandlerFunc) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	groups := metav1.APIGroupList{}
	for group, kind := range map[string]metav1.APIResource{
		"kueue.x-k8s.io/v1beta2":         {Name: "clusterqueues", Kind: "ClusterQueue"},
		"workload.codeflare.dev/v1beta2": {Name: "appwrappers", Kind: "AppWrapper", Namespaced: true},
		"kubeflow.org/v1":                {Name: "pytorchjobs", Kind: "PyTorchJob", Namespaced: true},
		"jobset.x-k8s.io/v1alpha2":       {Name: "jobsets", Kind: "JobSet", Namespaced: true},
		"leaderworkerset.x-k8s.io/v1":    {Name: "leaderworkersets", Kind: "LeaderWorkerSet", Namespaced: true},
	} {
		name, version, _ := strings.Cut(group, "/")
		served := metav1.GroupVersionForDiscovery{GroupVersion: group, Version: version}
		groups.Groups = append(groups.Groups, metav1.APIGroup{Name: name, PreferredVersion: served, Versions: []metav1.GroupVersionForDiscovery{served}})
		mux.HandleFunc("GET /apis/"+group, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, metav1.APIResourceList{GroupVersion: group, APIResources: []metav1.APIResource{kind}})
		})
	}
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})
	})
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		pods := metav1.APIResource{Name: "pods", Kind: "Pod", Namespaced: true}
		answer(w, http.StatusOK, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{pods}})
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, groups) })
	mux.HandleFunc("POST /", create)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func refusal(code int32, message string) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: code, Message: message}
}

// everyQuestion returns the probes of a platform with every part.
func everyQuestion(t *testing.T) []Probe {
	t.Helper()
	all, err := ProbesFor(definitions(
		"kueue.x-k8s.io/ClusterQueue", "workload.codeflare.dev/AppWrapper", "kubeflow.org/PyTorchJob", "ray.io/RayCluster",
		"jobset.x-k8s.io/JobSet", "leaderworkerset.x-k8s.io/LeaderWorkerSet",
	), helmrelease.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func definitions(kinds ...string) []helmrelease.Object {
	var all []helmrelease.Object
	for _, crd := range fakecluster.CRDs(kinds...) {
		all = append(all, helmrelease.Object{Unstructured: crd})
	}
	return all
}

func TestOnlyWhatWasInstalledIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		kinds []string
		want  []Probe
	}{
		"a part and our controller": {[]string{"ray.io/RayCluster", "kubeflow.org/TFJob", "workload.codeflare.dev/AppWrapper"}, []Probe{
			{user: ""}, {user: "system:serviceaccount:queues:appwrapper-controller-manager"}, {user: "system:serviceaccount:queues:appwrapper-controller-manager"},
		}},
		"a part without our controller, in whose place nobody can ask": {[]string{"ray.io/RayCluster", "kubeflow.org/TFJob"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := ProbesFor(definitions(c.kinds...), "queues")
			for n := range all {
				all[n].object = nil
			}
			if diff := cmp.Diff(c.want, all, cmp.AllowUnexported(Probe{})); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestProbesAreMadeUntilEachIsJudged(t *testing.T) {
	var asked []string
	config := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Impersonate-User")+" "+r.URL.Path+"?"+r.URL.RawQuery)
		switch len(asked) {
		case 1: // the first webhook has no certificate yet
			answer(w, http.StatusInternalServerError, refusal(500, `Internal error occurred: failed calling webhook "x": connection refused`))
		case 8: // the kind was installed a moment ago
			answer(w, http.StatusForbidden, refusal(403, "pods is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion kubeflow.org/v1"))
		default:
			answer(w, http.StatusForbidden, refusal(403, "admission webhook denied the request: there are no components"))
		}
	})
	if err := Webhooks(t.Context(), config, everyQuestion(t), time.Minute, io.Discard); err != nil {
		t.Fatal(err)
	}
	const controller = "system:serviceaccount:mlbatch-system:appwrapper-controller-manager"
	want := []string{
		" /apis/kueue.x-k8s.io/v1beta2/clusterqueues?dryRun=All",
		" /apis/kueue.x-k8s.io/v1beta2/clusterqueues?dryRun=All",
		" /apis/kubeflow.org/v1/namespaces/default/pytorchjobs?dryRun=All",
		" /apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets?dryRun=All",
		" /apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets?dryRun=All",
		" /apis/workload.codeflare.dev/v1beta2/namespaces/default/appwrappers?dryRun=All",
		controller + " /api/v1/namespaces/default/pods?dryRun=All",
		controller + " /api/v1/namespaces/default/pods?dryRun=All",
		controller + " /api/v1/namespaces/default/pods?dryRun=All",
		controller + " /api/v1/namespaces/default/pods?dryRun=All",
		controller + " /api/v1/namespaces/default/pods?dryRun=All",
		controller + " /api/v1/namespaces/default/pods?dryRun=All",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

func silent(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusInternalServerError, refusal(500, `failed calling webhook "x": connection refused`))
}

func TestAProbeThatIsNeverJudgedIsNamed(t *testing.T) {
	var progress strings.Builder
	err := webhook(t.Context(), apiServer(t, silent), everyQuestion(t)[0], time.Second, &progress)
	wording.Wanted(t, err, "the platform's webhooks did not answer within 1s, a ClusterQueue could not be validated")
	if got := progress.String(); strings.Count(got, "a ClusterQueue cannot be validated yet: ") != 1 {
		t.Errorf("the user is told %q, and not once why it takes so long", got)
	}
}

const (
	mayNotCreate      = `clusterqueues.kueue.x-k8s.io is forbidden: User "eve" cannot create resource "clusterqueues" in API group "kueue.x-k8s.io" at the cluster scope`
	mayNotImpersonate = `serviceaccounts "appwrapper-controller-manager" is forbidden: User "eve" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "mlbatch-system"`
)

func TestWhoMayNotAskIsTold(t *testing.T) {
	for name, why := range map[string]metav1.Status{
		"who may not create":              refusal(403, mayNotCreate),
		"who may not be another":          refusal(403, mayNotImpersonate),
		"whose credentials are not known": refusal(401, "Unauthorized"),
	} {
		t.Run(name, func(t *testing.T) {
			var progress strings.Builder
			config := apiServer(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, int(why.Code), why) })
			if err := webhook(t.Context(), config, everyQuestion(t)[0], time.Minute, &progress); err != nil {
				t.Fatal(err)
			}
			if want := "warning: could not check whether the webhook for ClusterQueue answers: " + why.Message + "\n"; progress.String() != want {
				t.Errorf("the user is told %q and not %q", progress.String(), want)
			}
		})
	}
}

func TestAnInterruptionIsNotTakenForSilence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	config := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		silent(w, r)
	})
	if err := Webhooks(ctx, config, everyQuestion(t), time.Minute, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhatCountsAsAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"it let the probe pass":           {nil, true},
		"it refused the probe":            {&apierrors.StatusError{ErrStatus: refusal(403, "denied the request")}, true},
		"the API server cannot reach it":  {&apierrors.StatusError{ErrStatus: refusal(500, "failed calling webhook")}, false},
		"the kind is not served yet":      {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404}}, false},
		"the API server has trouble":      {&apierrors.StatusError{ErrStatus: refusal(500, "etcdserver: request timed out")}, false},
		"an owner's kind is not known":    {&apierrors.StatusError{ErrStatus: refusal(403, "cannot find RESTMapping")}, false},
		"the API server is not reachable": {errors.New("connection refused"), false},
		"it was never asked":              {&apierrors.StatusError{ErrStatus: refusal(403, mayNotCreate)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := answered(c.err); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
