// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// An AppWrapper's failure is reported by an event and by a metric, which only authorized
// clients can read.
func TestWhoWatchesSeesThatAJobHasFailed(t *testing.T) {
	testenv.Test(t, features.New("monitoring").Assess("the failure is seen", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-failing", "frank", needs.Pods, needs.Machine)
		aw := wrapped("watched", job("watched", "100m", "exit", "3"), map[string]string{workload.RetryLimitAnnotation: "0"})
		s.create(ctx, aw)
		s.untilPhase(ctx, aw, workload.AppWrapperFailed)
		s.until(ctx, "an event tells of it", func(ctx context.Context) (string, error) { return s.warned(ctx, aw, "FailedComponent") })

		address := s.forward(ctx, cfg.Client().RESTConfig())
		if _, status := s.scrape(ctx, address, ""); status != http.StatusUnauthorized {
			t.Errorf("an anonymous request gets the status %d", status)
		}
		token := s.token(ctx, "e2e-scraper")
		if _, status := s.scrape(ctx, address, token); status != http.StatusForbidden {
			t.Errorf("an unauthorized service account gets the status %d", status)
		}
		s.permit(ctx, "e2e-scraper")
		s.until(ctx, "the metrics have it", func(ctx context.Context) (string, error) {
			text, status := s.scrape(ctx, address, token)
			for _, want := range []string{
				`appwrapper_phase_total{namespace="e2e-failing",phase="Failed"}`,
				`appwrapper_transitions_total{cause="ComponentFailed",from="Running",to="Failed"}`,
				`controller_runtime_max_concurrent_reconciles{controller="appwrapper"}`,
				`leader_election_master_status{name="f134c674.codeflare.dev"} 1`,
			} {
				if !strings.Contains(text, want) {
					return fmt.Sprintf("%d, and no %s", status, want), nil
				}
			}
			return "", nil
		})
		return ctx
	}).Feature())
}

// warned returns "" if there is a warning with that reason about an AppWrapper.
func (s *story) warned(ctx context.Context, aw *workload.AppWrapper, reason string) (string, error) {
	events, err := s.api.EventsV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var others []string
	for _, e := range events.Items {
		if e.Regarding.UID != aw.UID {
			continue
		}
		if e.Reason == reason && e.Type == corev1.EventTypeWarning && e.Action == "Unhealthy" {
			return "", nil
		}
		others = append(others, show(e))
	}
	return fmt.Sprintf("there are %q", others), nil
}

func show(e eventsv1.Event) string { return e.Type + " " + e.Reason + ": " + e.Note }

// forward forwards a local port to the metrics of the running controller.
func (s *story) forward(ctx context.Context, config *rest.Config) (address string) {
	s.t.Helper()
	pods, err := s.api.CoreV1().Pods(platform.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "control-plane=controller-manager,app.kubernetes.io/name=appwrapper"})
	if err != nil || len(pods.Items) != 1 {
		s.t.Fatalf("there is not one pod of the controller: %v", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	url := s.api.CoreV1().RESTClient().Post().Resource("pods").Namespace(platform.Namespace).Name(pods.Items[0].Name).SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	s.t.Cleanup(func() { close(stop) })
	ports, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), []string{"0:8443"}, stop, ready, nil, io.Discard)
	if err != nil {
		s.t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- ports.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		s.t.Fatalf("cannot reach the controller: %v", err)
	}
	forwarded, err := ports.GetPorts()
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("https://127.0.0.1:%d/metrics", forwarded[0].Local)
}

func (s *story) scrape(ctx context.Context, address, token string) (text string, status int) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// As the chart's ServiceMonitor does: the controller signs this certificate itself.
	scraper := &http.Client{Transport: &http.Transport{Proxy: nil, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer scraper.CloseIdleConnections()
	response, err := scraper.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body), response.StatusCode
}

// token creates a service account and returns a token for it.
func (s *story) token(ctx context.Context, account string) string {
	s.t.Helper()
	owned := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: s.namespace}}
	if err := s.admin.Create(ctx, owned); err != nil {
		s.t.Fatal(err)
	}
	s.created = append(s.created, owned)
	request, err := s.api.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return request.Status.Token
}

// permit binds the chart's metrics-reader role to a service account.
func (s *story) permit(ctx context.Context, account string) {
	s.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "appwrapper-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: s.namespace}},
	}
	if err := s.admin.Create(ctx, binding); err != nil {
		s.t.Fatal(err)
	}
	s.created = append(s.created, binding)
}
