// SPDX-License-Identifier: Apache-2.0

// Command demo is 'make demo': it starts a local cluster, installs the platform, onboards two
// teams, submits a training job as a member of one of them, follows it until it succeeds, and
// then does the same with a Run of an Application.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// settings is the settings file of the training job, and sample has an Application and its Run,
// in the checkout.
const (
	settings = "samples/pytorch-digits/settings.yaml"
	sample   = "samples/codeflare/digits.yaml"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	port, err := portFrom(os.Args[1:])
	if err == nil {
		err = run(ctx, port)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted; run 'make demo' again to resume, or 'make demo-down' to remove the cluster")
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
	default:
		return
	}
	os.Exit(1)
}

// portFrom reads the command line that the Makefile writes: -port=$DEMO_PORT. Port 0
// means the default.
func portFrom(args []string) (int, error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is one sentence, without the usage
	text := flags.String("port", "0", "")
	if err := flags.Parse(args); err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(*text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("DEMO_PORT is %q, which is not a port: set it to a number from 1 to 65535", *text)
	}
	return int(port), nil
}

func run(ctx context.Context, port int) error {
	checkout, err := localcluster.FindCheckout(".")
	if err != nil {
		return err
	}
	cluster, err := localcluster.New(localcluster.Config{Checkout: checkout, Port: port}, os.Stdout)
	if err != nil {
		return err
	}
	site := platform.Site{Cluster: cluster, Checkout: checkout, Progress: os.Stdout, Values: []string{"setup/profiles/runs.yaml"}}
	report := newReport()
	err = play(ctx, site, report)
	// Record a failed run as well: the file of an earlier run would report success.
	if err := errors.Join(err, report.write(filepath.Join(checkout, "dist", "demo.json"), err)); err != nil {
		return err
	}
	report.print(os.Stdout)
	fmt.Printf(lookAround, cluster.KubeconfigPath(), cluster.KubectlPath())
	return nil
}

// play is the demo from the settings file to the end of the second training.
func play(ctx context.Context, site platform.Site, report *report) error {
	// Read what will run first: a mistake in it should not cost a build.
	job, err := renderJob(ctx, site, settings)
	if err != nil {
		return err
	}
	manifests, err := runs.Read([]string{filepath.Join(site.Checkout, sample)}, nil, team)
	if err != nil {
		return err
	}
	if err := prepare(ctx, site, report); err != nil {
		return err
	}
	config, err := site.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	access, err := newAccess(config)
	if err != nil {
		return err
	}
	if err := follow(ctx, access, job, report); err != nil {
		return err
	}
	return execute(ctx, access, manifests, report)
}

// prepare does everything until a user can submit a job.
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
  kubectl get runs,appwrappers,workloads,pods -n blue -o wide
  kubectl get clusterqueues
  kubectl logs -n blue digits-master-0
  kubectl describe appwrapper -n blue digits
See it in a browser:
  make bin/mlbatch && bin/mlbatch web --namespace blue
Remove the cluster: make demo-down
`
