// SPDX-License-Identifier: Apache-2.0

package main

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/appwrapper"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/controller/internal/jsonwatch"
	"github.com/mlbatch/mlbatch/controller/internal/serving"
)

// leaderElectionID is the name of the Lease. Every AppWrapper controller uses it, so that
// only one of them is active in a namespace. Package othercontroller does the same across
// namespaces.
const leaderElectionID = "f134c674.codeflare.dev"

func newManager(c config.Config, namespace string) (ctrl.Manager, error) {
	client, err := serving.Client(c.ClientConnection)
	if err != nil {
		return nil, err
	}
	options, err := managerOptions(c)
	if err != nil {
		return nil, err
	}
	return serving.Manager(client, options, c.ControllerManager, namespace, leaderElectionID)
}

func managerOptions(c config.Config) (ctrl.Options, error) {
	options := serving.Options(c.ControllerManager, c.CertManagement)
	var err error
	if options.Scheme, err = newScheme(); err != nil {
		return options, err
	}
	options.NewCache = jsonwatch.New
	options.Cache, err = appwrapper.CacheOptions(c.AppWrapper)
	return options, err
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authorizationv1.AddToScheme, admissionregistrationv1.AddToScheme, coordinationv1.AddToScheme, v1beta2.AddToScheme, kueue.AddToScheme, nodev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}
