// SPDX-License-Identifier: Apache-2.0

// The controller of Runs: it makes an AppWrapper for each Run, and says how far that is. It is a
// program of its own, beside the AppWrapper controller, because it needs none of that one's rights
// on pods and Jobs.
package main

import (
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/jsonwatch"
	runs "github.com/mlbatch/mlbatch/controller/internal/run"
	"github.com/mlbatch/mlbatch/controller/internal/runadmission"
	"github.com/mlbatch/mlbatch/controller/internal/serving"
	"github.com/mlbatch/mlbatch/controller/internal/servingcert"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "unreleased"

// leaderElectionID is the name of the Lease.
const leaderElectionID = "codeflare-runs"

func main() {
	serving.Main(version, run)
}

// collectAt: garbage is collected when the heap has grown by a tenth, and not when it has doubled. A
// controller that is quiet most of the time has processor time for that.
const collectAt = 10

func run(file string, log logr.Logger) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	c, notes, err := config.LoadRuns(file)
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
	client, err := serving.Client(c.ClientConnection)
	if err != nil {
		return err
	}
	options, err := managerOptions(c)
	if err != nil {
		return err
	}
	mgr, err := serving.Manager(client, options, c.ControllerManager, namespace, leaderElectionID)
	if err != nil {
		return err
	}
	if err := setup(mgr, c); err != nil {
		return err
	}
	log.Info("starting", "version", version, "namespace", namespace)
	return mgr.Start(ctrl.SetupSignalHandler())
}

// setup starts the controller after the webhooks: they write down who made a Run.
func setup(mgr ctrl.Manager, c config.Runs) error {
	authors := accessreview.NewAuthors(mgr.GetClient())
	served, err := serving.Probes(mgr, c.WebhooksEnabled, c.CertManagement, func() error { return runadmission.Setup(mgr, authors) })
	if err != nil {
		return err
	}
	settings := runplan.Settings{
		GPUResourceName: c.GPUResourceName, Gang: c.Gang, AgentImage: c.AgentImage, Datashim: c.Datashim, BrokerFSGroup: c.BrokerFSGroup,
		BrokerResources: corev1.ResourceList{corev1.ResourceCPU: c.BrokerResources.CPU, corev1.ResourceMemory: c.BrokerResources.Memory},
	}
	return mgr.Add(servingcert.After(served, func() error { return runs.Setup(mgr, settings, authors, c.WebhooksEnabled) }))
}

func managerOptions(c config.Runs) (ctrl.Options, error) {
	options := serving.Options(c.ControllerManager, c.CertManagement)
	var err error
	if options.Scheme, err = newScheme(); err != nil {
		return options, err
	}
	options.NewCache = jsonwatch.New
	options.Cache, err = runs.CacheOptions()
	return options, err
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authorizationv1.AddToScheme, admissionregistrationv1.AddToScheme, v1beta2.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}
