// SPDX-License-Identifier: Apache-2.0

// Package serving is what the programs of this folder have in common: flags, and a process that
// elects a leader and serves health, metrics and webhooks. What a program does is not its concern.
package serving

import (
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/election"
	"github.com/mlbatch/mlbatch/controller/internal/metricsaccess"
	"github.com/mlbatch/mlbatch/controller/internal/servingcert"
)

// Main reads the flags and runs a program with its configuration file.
func Main(version string, run func(file string, log logr.Logger) error) {
	runtime.MemProfileRate = 0 // nothing serves the profile, which takes more than a megabyte
	file := flag.String("config", "/etc/mlbatch/config.yaml", "the configuration file")
	printVersion := flag.Bool("version", false, "print the version and exit")
	logging := zap.Options{Development: true}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if *printVersion {
		fmt.Println(version)
		return
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	log := ctrl.Log.WithName("setup")
	if err := run(*file, log); err != nil {
		log.Error(err, "controller exited with an error")
		os.Exit(1)
	}
}

// Client is how a program connects to the API server.
func Client(c config.ClientConnection) (*rest.Config, error) {
	client, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	client.QPS, client.Burst = c.QPS, c.Burst
	return client, nil
}

// Manager makes a manager whose leader holds a Lease of the program's own namespace, and writes only
// as long as it does.
func Manager(client *rest.Config, options ctrl.Options, c config.ControllerManager, namespace, lease string) (ctrl.Manager, error) {
	if c.LeaderElection {
		lock, err := election.New(client, namespace, lease, c.LeaseDuration.Duration)
		if err != nil {
			return nil, err
		}
		elect(&options, lock, lease, c.LeaseDuration.Duration)
	}
	mgr, err := ctrl.NewManager(client, options)
	if err != nil {
		return nil, fmt.Errorf("cannot make the manager: %w", err)
	}
	return mgr, nil
}

func elect(options *ctrl.Options, lock *election.Lock, name string, duration time.Duration) {
	options.LeaderElection, options.LeaderElectionResourceLockInterface = true, lock
	options.LeaderElectionID = name              // in the metric leader_election_master_status
	options.LeaderElectionReleaseOnCancel = true // or the next one waits until it expires
	options.LeaseDuration = new(duration)
	options.RenewDeadline = new(election.RenewDeadline(duration))
	options.RetryPeriod = new(election.RetryPeriod(duration))
}

// Options are those of a manager. They lack the scheme and the caches.
func Options(c config.ControllerManager, certs config.CertManagement) ctrl.Options {
	return ctrl.Options{
		HealthProbeBindAddress: c.Health.BindAddress,
		Metrics: metricsserver.Options{
			BindAddress:    c.Metrics.BindAddress,
			SecureServing:  true,
			FilterProvider: metricsaccess.Filter,
			TLSOpts:        tlsOptions(c),
		},
		WebhookServer: webhook.NewServer(webhook.Options{CertDir: certs.CertificateDir, TLSOpts: tlsOptions(c)}),
	}
}

// tlsOptions disable HTTP/2 unless it is enabled: rapid resets let a client without any
// rights keep a server busy.
func tlsOptions(c config.ControllerManager) []func(*tls.Config) {
	if c.EnableHTTP2 {
		return nil
	}
	return []func(*tls.Config){func(t *tls.Config) { t.NextProtos = []string{"http/1.1"} }}
}

// Probes adds the health check, and serves the webhooks once their certificate is ready. The
// channel is closed then, or at once if they are disabled.
func Probes(mgr ctrl.Manager, webhooksEnabled bool, certs config.CertManagement, webhooks func() error) (<-chan struct{}, error) {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	served := make(chan struct{})
	if !webhooksEnabled {
		close(served)
		return served, mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	ready, err := servingcert.Setup(mgr, certs)
	if err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("webhooks", servingcert.Check(ready, mgr.GetWebhookServer)); err != nil {
		return nil, err
	}
	return served, mgr.Add(servingcert.After(ready, func() error {
		err := webhooks()
		if err == nil {
			close(served)
		}
		return err
	}))
}
