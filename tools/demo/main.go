// SPDX-License-Identifier: Apache-2.0

// Command demo is 'make demo': it brings up a local cluster, installs the
// platform, onboards two teams, submits a training job as a member of one of
// them and follows it until it has succeeded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/platform"
)

func main() {
	var settings string
	flag.StringVar(&settings, "settings", "samples/pytorch-digits/settings.yaml", "settings file of the training job")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, settings); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, settings string) error {
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		return err
	}
	cluster, err := localcluster.New(localcluster.Config{Checkout: checkout}, os.Stdout)
	if err != nil {
		return err
	}
	site := platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stdout}
	report := newReport()
	// Settings are rendered first: a mistake in them should not cost a build.
	job, err := renderJob(ctx, site, settings)
	if err != nil {
		return err
	}
	if err := prepare(ctx, site, report); err != nil {
		return err
	}
	trained := follow(ctx, site, job, report)
	if err := report.write("dist/demo.json"); err != nil {
		return errors.Join(trained, err)
	}
	if trained != nil {
		return trained
	}
	report.print(os.Stdout)
	fmt.Printf(lookAround, cluster.KubeconfigPath(), cluster.KubectlPath())
	return nil
}

// prepare does everything up to the point where a user could submit a job.
func prepare(ctx context.Context, site platform.Site, report *report) error {
	var training string
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"build components and images", func() (err error) { training, err = site.Build(ctx); return err }},
		{"start the cluster", func() error { return site.Cluster.Up(ctx) }},
		{"load images", func() error { return site.LoadImages(ctx, training) }},
		{"install the platform", func() error { return site.Install(ctx) }},
		{"onboard two teams", func() error { return site.Onboard(ctx, "setup/teams/demo.yaml") }},
	} {
		fmt.Printf("\n== %s\n", step.name)
		begin := time.Now()
		if err := step.do(); err != nil {
			return err
		}
		report.step(step.name, time.Since(begin))
	}
	return nil
}

const lookAround = `
Look around:
  export KUBECONFIG=%s
  alias kubectl=%s
  kubectl get appwrappers,workloads,pods -n blue -o wide
  kubectl get clusterqueues
  kubectl logs -n blue digits-master-0
  kubectl describe appwrapper -n blue digits
End it with: make demo-down
`
