// SPDX-License-Identifier: Apache-2.0

// The AppWrapper controller of MLBatch. Main wires the parts: flags, the configuration file,
// a manager, and then each part into the manager.
package main

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mlbatch/mlbatch/controller/internal/activity"
	"github.com/mlbatch/mlbatch/controller/internal/admission"
	"github.com/mlbatch/mlbatch/controller/internal/appwrapper"
	"github.com/mlbatch/mlbatch/controller/internal/capacityprovider"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/cordon"
	"github.com/mlbatch/mlbatch/controller/internal/nodesizes"
	"github.com/mlbatch/mlbatch/controller/internal/nodewatch"
	"github.com/mlbatch/mlbatch/controller/internal/othercontroller"
	"github.com/mlbatch/mlbatch/controller/internal/serving"
	"github.com/mlbatch/mlbatch/controller/internal/slackqueue"
	"github.com/mlbatch/mlbatch/controller/internal/workload"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "unreleased"

func main() {
	serving.Main(version, run)
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
		return err
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
	served, err := serving.Probes(mgr, c.WebhooksEnabled, c.CertManagement, func() error {
		return admission.Setup(mgr, c.AppWrapper, namespace)
	})
	if err != nil {
		return err
	}
	own := othercontroller.Own{
		Service:      types.NamespacedName{Namespace: namespace, Name: c.CertManagement.WebhookServiceName},
		Lease:        leaderElectionID,
		Elects:       c.ControllerManager.LeaderElection,
		IgnoreOthers: c.ControllerManager.IgnoreOtherControllers,
	}
	// Replicas that wait to be the leader hear of pods, too, so this is not among what only the leader does.
	heard, err := appwrapper.Hear(context.Background(), mgr.GetFieldIndexer(), mgr.GetCache())
	if err != nil {
		return err
	}
	return mgr.Add(othercontroller.After(served, mgr, own, func() error {
		evictions := &workload.Evictions{}
		signs, err := activity.Setup(mgr, c.AppWrapper.DeviceActivity)
		if err != nil {
			return err
		}
		if err := appwrapper.Setup(mgr, c, evictions, signs, heard); err != nil {
			return err
		}
		if err := countNodes(mgr, c.AppWrapper, namespace); err != nil {
			return err
		}
		if err := cordon.Setup(mgr, cordon.Settings{Cordoning: c.AppWrapper.NodeHealth.Cordoning(), Remembered: c.AppWrapper.NodeHealth.Avoid.Period.Duration}); err != nil {
			return err
		}
		return workload.Setup(mgr, workload.Settings{Pause: c.AppWrapper.PreemptionPause.Pause(), Avoid: c.AppWrapper.Autopilot.Avoidance()}, evictions)
	}))
}

// countNodes starts what follows from what the nodes have.
func countNodes(mgr ctrl.Manager, c config.AppWrapper, namespace string) error {
	nodes := nodewatch.New(mgr, c.SlackRules(), namespace)
	slack := slackqueue.Settings{Queues: c.SlackQueues(), Rules: c.SlackRules(), Namespace: namespace}
	if err := slackqueue.Setup(mgr, nodes, slack); err != nil {
		return err
	}
	capacity := capacityprovider.Settings{Providers: c.NodeHealth.CapacityProviders, Rules: c.SlackRules()}
	if err := capacityprovider.Setup(mgr, nodes, capacity); err != nil {
		return err
	}
	return nodesizes.Setup(mgr, nodes, c.Autopilot.MonitorNodes)
}
