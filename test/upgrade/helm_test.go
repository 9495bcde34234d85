// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"time"

	"helm.sh/helm/v3/pkg/action"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// uninstall does what helm uninstall --wait does.
func (s *site) uninstall(release string) {
	s.Helper()
	uninstall := action.NewUninstall(s.helm())
	uninstall.Wait, uninstall.Timeout = true, patience.For(2*time.Minute)
	s.timed("uninstall "+release, func() {
		_, err := uninstall.Run(release)
		s.must(err)
	})
}

// rollback does what helm rollback --wait does, to the revision before.
func (s *site) rollback(release string) {
	s.Helper()
	rollback := action.NewRollback(s.helm())
	rollback.Wait, rollback.Timeout = true, patience.For(5*time.Minute)
	s.timed("rollback "+release, func() { s.must(rollback.Run(release)) })
}

func (s *site) helm() *action.Configuration {
	s.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig, namespace := s.Cluster.KubeconfigPath(), platform.Namespace
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := &action.Configuration{}
	s.must(config.Init(flags, namespace, "secret", func(string, ...any) {}))
	return config
}
