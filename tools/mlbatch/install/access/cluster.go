// SPDX-License-Identifier: Apache-2.0

// Package access answers: how do we connect to the cluster, and what is the user allowed to do there?
package access

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/action"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Cluster selects a cluster, and the user there, as kubectl does.
type Cluster struct {
	// Kubeconfig defaults to the one that kubectl would use, and Context to the current one.
	Kubeconfig, Context string
	// As and Groups are who is impersonated, if anyone is.
	As     string
	Groups []string
}

// Check returns an error if groups are to be impersonated without a user.
func (c Cluster) Check() error {
	if c.As == "" && len(c.Groups) > 0 {
		return errors.New("--as-group needs a user: add --as USER")
	}
	return nil
}

func (c Cluster) flags(namespace string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Context, flags.Namespace = &c.Kubeconfig, &c.Context, &namespace
	flags.Impersonate, flags.ImpersonateGroup = &c.As, &c.Groups
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS = -1 // no limit: every object of a release is read
		config.WarningHandler = rest.NoWarnings{}
		return config
	}
	return flags
}

// Helm returns Helm's configuration for the cluster. Helm's log is discarded: except for an
// uninstall, the errors that Helm returns say the same.
func (c Cluster) Helm(namespace string) (*action.Configuration, error) {
	config := &action.Configuration{}
	if err := config.Init(c.flags(namespace), namespace, "secret", func(string, ...any) {}); err != nil {
		return nil, fmt.Errorf("cannot set up Helm: %w", err)
	}
	return config, nil
}

// API has our own clients for the cluster.
type API struct {
	client.Client
	kubernetes.Interface
	Config *rest.Config
}

// Connect returns the clients, or an error if the API server does not answer.
func (c Cluster) Connect() (API, error) {
	if err := c.Check(); err != nil {
		return API{}, err
	}
	config, err := c.flags("").ToRESTConfig()
	if err != nil {
		return API{}, c.notFound(err)
	}
	log.SetLogger(logr.Discard()) // a stack is printed if nobody has chosen a logger
	objects, err := client.New(config, client.Options{})
	if err != nil {
		return API{}, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return API{}, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	if _, err := typed.Discovery().ServerVersion(); err != nil {
		loader := c.flags("").ToRawKubeConfigLoader()
		if raw, _ := loader.RawConfig(); len(raw.Clusters) == 0 && config.BearerTokenFile == "" { // and this program does not run in a pod
			return API{}, NoCluster(loader.ConfigAccess())
		}
		return API{}, unreachable(config.Host, err)
	}
	return API{Client: objects, Interface: typed, Config: config}, nil
}

// ErrNone is of a user who has no kubeconfig, or one without a cluster.
var ErrNone = errors.New("there is none")

// NoCluster returns the error for a missing kubeconfig. It names the files that were tried.
func NoCluster(access clientcmd.ConfigAccess) error {
	return fmt.Errorf("cannot find the cluster: %w in %s: name a kubeconfig with --kubeconfig or KUBECONFIG", ErrNone,
		strings.Join(access.GetLoadingPrecedence(), ", "))
}
