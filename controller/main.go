// SPDX-License-Identifier: Apache-2.0

// The AppWrapper controller of MLBatch. Main wires the parts: flags, the configuration file,
// a manager, and then each part into the manager.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/mlbatch/mlbatch/controller/internal/admission"
	"github.com/mlbatch/mlbatch/controller/internal/appwrapper"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/othercontroller"
	"github.com/mlbatch/mlbatch/controller/internal/servingcert"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "unreleased"

func main() {
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

func run(file string, log logr.Logger) error {
	c, notes, err := config.Load(file)
	if err != nil {
		return err
	}
	for _, note := range notes {
		log.Info(note)
	}
	namespace, err := config.OwnNamespace()
	if err != nil {
		return err
	}
	if c.CertManagement.Namespace == "" {
		c.CertManagement.Namespace = namespace
	}
	mgr, err := newManager(c, namespace)
	if err != nil {
		return fmt.Errorf("cannot make the manager: %w", err)
	}
	if err := setup(mgr, c, namespace); err != nil {
		return err
	}
	log.Info("starting", "version", version, "namespace", namespace)
	return mgr.Start(ctrl.SetupSignalHandler())
}

// setup starts the AppWrapper controller only after the webhooks, if they are enabled:
// nothing may be deployed for an author whose rights have not been checked.
func setup(mgr ctrl.Manager, c config.Config, namespace string) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	served, err := webhooks(mgr, c, namespace)
	if err != nil {
		return err
	}
	own := othercontroller.Own{
		Service:      types.NamespacedName{Namespace: namespace, Name: c.CertManagement.WebhookServiceName},
		Lease:        leaderElectionID,
		Elects:       c.ControllerManager.LeaderElection,
		IgnoreOthers: c.ControllerManager.IgnoreOtherControllers,
	}
	return mgr.Add(othercontroller.After(served, mgr, own, func() error { return appwrapper.Setup(mgr, c) }))
}

// webhooks are served once their certificate is ready. The channel is closed then, or at once
// if they are disabled.
func webhooks(mgr ctrl.Manager, c config.Config, namespace string) (<-chan struct{}, error) {
	served := make(chan struct{})
	if !c.WebhooksEnabled {
		close(served)
		return served, mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	ready, err := servingcert.Setup(mgr, c.CertManagement)
	if err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("webhooks", servingcert.Check(ready, mgr.GetWebhookServer)); err != nil {
		return nil, err
	}
	return served, mgr.Add(servingcert.After(ready, func() error {
		err := admission.Setup(mgr, c.AppWrapper, namespace)
		if err == nil {
			close(served)
		}
		return err
	}))
}
