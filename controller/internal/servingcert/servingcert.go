// SPDX-License-Identifier: Apache-2.0

// Package servingcert answers when the webhook server may start: once its
// certificate exists and both webhook configurations trust it. cert-controller
// makes and renews the certificate in a Secret; this package hands it to the
// server and tells the rest of the process when it is there.
package servingcert

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/mlbatch/mlbatch/controller/internal/config"
)

// Setup adds the rotation of the certificate to mgr. The channel is closed when
// the certificate is in place and trusted.
//
// Every replica rotates, leader or not, because every replica serves; the
// Secret's resourceVersion decides between two that try at once.
//
// Where cert-manager does all of this, the certificate was mounted before the process
// began, and nothing is added.
func Setup(mgr manager.Manager, c config.CertManagement) (<-chan struct{}, error) {
	ready := make(chan struct{})
	if c.CertManager {
		close(ready)
		return ready, nil
	}
	secret := types.NamespacedName{Namespace: c.Namespace, Name: c.WebhookSecretName}
	if err := rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      secret,
		CertDir:        c.CertificateDir,
		CAName:         c.CertificateName,
		CAOrganization: c.CertificateOrg,
		DNSName:        fmt.Sprintf("%s.%s.svc", c.WebhookServiceName, c.Namespace),
		IsReady:        ready,
		Webhooks: []rotator.WebhookInfo{
			{Type: rotator.Mutating, Name: c.MutatingWebhookConfigName},
			{Type: rotator.Validating, Name: c.ValidatingWebhookConfigName},
		},
		// One goroutine of the rotator makes the certificate and another one trusts
		// it. Unless the second waits, both make one, and the log has an error.
		EnableReadinessCheck: true,
	}); err != nil {
		return nil, fmt.Errorf("cannot set up certificate rotation: %w", err)
	}
	copier, err := newCopier(mgr, secret, c.CertificateDir)
	if err != nil {
		return nil, err
	}
	return ready, mgr.Add(copier)
}

// After runs then once ready is closed. A webhook server that starts earlier
// finds no certificate and ends the process.
func After(ready <-chan struct{}, then func() error) manager.Runnable {
	return &after{ready: ready, then: then}
}

type after struct {
	ready <-chan struct{}
	then  func() error
}

// Start waits, unless the process ends first.
func (a *after) Start(ctx context.Context) error {
	select {
	case <-a.ready:
		return a.then()
	case <-ctx.Done():
		return nil
	}
}

// NeedLeaderElection is false: every replica serves the webhooks.
func (*after) NeedLeaderElection() bool { return false }

// Check reports ready when the certificate is and the server answers. The server
// is asked for only then, because asking a manager for it starts it.
func Check(ready <-chan struct{}, server func() webhook.Server) healthz.Checker {
	return func(r *http.Request) error {
		select {
		case <-ready:
			return server().StartedChecker()(r)
		default:
			return errors.New("the webhook certificate is not ready yet")
		}
	}
}
