// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/appwrapper"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/metricsaccess"
)

// leaderElectionID is the name of the Lease. Every AppWrapper controller uses it, so that
// only one of them is active in a namespace. Package othercontroller does the same across
// namespaces.
const leaderElectionID = "f134c674.codeflare.dev"

func newManager(c config.Config, namespace string) (ctrl.Manager, error) {
	rest, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	rest.QPS, rest.Burst = c.ClientConnection.QPS, c.ClientConnection.Burst
	options, err := managerOptions(c, namespace)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(rest, options)
}

func managerOptions(c config.Config, namespace string) (ctrl.Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	caches, err := appwrapper.CacheOptions(c.AppWrapper)
	if err != nil {
		return ctrl.Options{}, err
	}
	return ctrl.Options{
		Scheme:                        scheme,
		Cache:                         caches,
		LeaderElection:                c.ControllerManager.LeaderElection,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        c.ControllerManager.Health.BindAddress,
		Metrics: metricsserver.Options{
			BindAddress:    c.ControllerManager.Metrics.BindAddress,
			SecureServing:  true,
			FilterProvider: metricsaccess.Filter,
			TLSOpts:        tlsOptions(c.ControllerManager),
		},
		WebhookServer: webhook.NewServer(webhook.Options{
			CertDir: c.CertManagement.CertificateDir,
			TLSOpts: tlsOptions(c.ControllerManager),
		}),
	}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authorizationv1.AddToScheme, admissionregistrationv1.AddToScheme, coordinationv1.AddToScheme, v1beta2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// tlsOptions disable HTTP/2 unless it is enabled: rapid resets let a client without any
// rights keep a server busy.
func tlsOptions(c config.ControllerManager) []func(*tls.Config) {
	if c.EnableHTTP2 {
		return nil
	}
	return []func(*tls.Config){func(t *tls.Config) { t.NextProtos = []string{"http/1.1"} }}
}
