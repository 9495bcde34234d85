// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// Metrics of a controller's process.
const (
	reconciles = "controller_runtime_reconcile_total"
	processor  = "process_cpu_seconds_total"
	resident   = "process_resident_memory_bytes"
)

// scraper reads a controller's metrics as Prometheus does.
type scraper struct {
	*testing.T
	url, token string
	http       *http.Client
}

// newScraper reads those of the controller of a chart.
func newScraper(t *testing.T, p person, admin client.Client, chart string) *scraper {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "scraper"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: chart + "-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "scraper"}},
	}
	token := &authenticationv1.TokenRequest{}
	pods := &corev1.PodList{}
	err := errors.Join(
		admin.Create(t.Context(), account), admin.Create(t.Context(), binding),
		admin.SubResource("token").Create(t.Context(), account, token),
		admin.List(t.Context(), pods, client.InNamespace(platform.Namespace), client.MatchingLabels{"app.kubernetes.io/name": chart}),
	)
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("there are %d pods of our controller, error %v", len(pods.Items), err)
	}
	return &scraper{T: t, url: "https://" + pods.Items[0].Status.PodIP + ":8443/metrics", token: token.Status.Token, http: &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       p.dial,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate is generated at startup
		},
	}}
}

// dial connects from inside the cluster's network.
func (p person) dial(ctx context.Context, network, address string) (connection net.Conn, err error) {
	var keeper plan.Keeper
	if err := plan.Read(p.dir(), plan.KeeperFile, &keeper); err != nil {
		return nil, err
	}
	err = sandbox.InNetworkOf(keeper.PID, func() (err error) {
		connection, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return connection, err
}

// scrape returns each metric, summed over its labels. It asks again until there is an answer: a busy API server may
// not say in time what the scraper may do.
func (s *scraper) scrape() (sums map[string]float64) {
	s.Helper()
	await(s.T, "there are metrics", func(ctx context.Context) (err error) {
		sums, err = s.try(ctx)
		return err
	})
	return sums
}

func (s *scraper) try(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the request for metrics returned %s, error %w", response.Status, err)
	}
	sums := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			sums[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sums, nil
}
