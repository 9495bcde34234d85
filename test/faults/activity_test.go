// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// figuresAddress is that of the node, in testdata/values.yaml.
const figuresAddress = "10.200.0.1:26612"

// figures answers as a Prometheus that knows which pods compute. It is guarded as on clusters: by TLS, with a
// certificate that the cluster's authority has signed, and by a review of the token.
type figures struct {
	mu        sync.Mutex
	computing []string
	// askedAbout has the pods that a caller with a token asked about.
	askedAbout map[string]bool
}

var theFigures = &figures{askedAbout: map[string]bool{}}

// serveIn listens in the network of the cluster, for as long as the tests run.
func (f *figures) serveIn(cluster *localcluster.Cluster) error {
	listener, err := sandbox.ListenIn(cluster, figuresAddress)
	if err != nil {
		return err
	}
	ofTheNode := filepath.Join(cluster.Dir(), "pki", "kubelet-serving")
	certificate, err := tls.LoadX509KeyPair(ofTheNode+".crt", ofTheNode+".key")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: f, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return nil
}

// asksAbout is the query in testdata/values.yaml, about pods.
var asksAbout = regexp.MustCompile(`^computes\{namespace="[^"]+", pod=~"([^"]+)"\}$`)

func (f *figures) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := mayAsk(r); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	asked := asksAbout.FindStringSubmatch(r.FormValue("query"))
	if r.URL.Path != "/api/v1/query" || asked == nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":"not the query of this test"}`)
		return
	}
	type sample struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	series := []sample{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pod := range strings.Split(asked[1], "|") {
		f.askedAbout[pod] = true
		value := "0"
		if slices.Contains(f.computing, pod) {
			value = "1"
		}
		series = append(series, sample{map[string]string{"pod": pod}, [2]any{time.Now().Unix(), value}})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": series}})
}

// mayAsk asks the API server whose token it is, as what guards a Prometheus does.
func mayAsk(r *http.Request) error {
	token, has := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !has {
		return errors.New("there is no token")
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"prometheus"}}}
	if err := admin.Create(r.Context(), review); err != nil {
		return err
	}
	if user := review.Status.User.Username; !review.Status.Authenticated || user != "system:serviceaccount:mlbatch-system:appwrapper-controller-manager" {
		return fmt.Errorf("the token is that of %q, %s", user, review.Status.Error)
	}
	return nil
}

// say says that these pods compute, and no others.
func (f *figures) say(computing ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.computing = computing
}

func (f *figures) wereAskedAbout(pod string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.askedAbout[pod]
}

// secondSign: two jobs look lost, one because it is silent and one because it is idle. Prometheus says that both
// compute. So neither is touched, until it says that they do not.
func secondSign(t *testing.T) {
	silent := &job{T: t, name: newName(), pods: 2, gpus: gpusOfAPod, annotations: hangsFor("5s"), edit: probed}
	unused := &job{T: t, name: newName(), pods: 1, gpus: gpusOfAPod, annotations: map[string]string{workload.IdleGracePeriodDurationAnnotation: "10s"}}
	for _, j := range []*job{silent, unused} {
		t.Cleanup(j.end)
		j.submit()
		j.await("runs", time.Minute, time.Time{}, running)
	}
	pods, leftover := silent.itsPods(), unused.itsPods()[0]
	theFigures.say(pods[1].Name, leftover.Name)
	t.Cleanup(func() { theFigures.say() })
	begin := time.Now()
	hang(t, pods, metav1.Now())
	leave(t, &leftover)
	silent.await("is held back", time.Minute, begin, has(workload.ComputesWithoutProgress))
	until(t, time.Minute, "Prometheus was asked about the idle job", func(context.Context) error {
		if !theFigures.wereAskedAbout(leftover.Name) {
			return errors.New("it was not")
		}
		return nil
	})
	rest := time.Now()
	theFigures.say()
	reset := silent.await("is reset", time.Minute, begin, in(workload.AppWrapperResetting))
	told := unused.await("is told", time.Minute, begin, has(workload.Idle))
	if reset.at.Before(rest) || told.at.Before(rest) {
		t.Errorf("one was reset at %s and the other told at %s, although they computed until %s", reset.at, told.at, rest)
	}
	if got := why(reset.aw); !strings.Contains(got, "NoProgress") || !strings.Contains(got, "; no pod computes") {
		t.Errorf("it says %q", got)
	}
}

// leave: from now on nobody uses the GPUs of a pod.
func leave(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	changePod(t, pod, func(s *corev1.PodStatus) {
		setCondition(s, corev1.PodCondition{Type: workload.PodIdleCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), LastProbeTime: metav1.Now()})
	})
}

// has: this condition is true.
func has(condition workload.AppWrapperCondition) func(*workload.AppWrapper) bool {
	return func(aw *workload.AppWrapper) bool {
		return meta.IsStatusConditionTrue(aw.Status.Conditions, string(condition))
	}
}
