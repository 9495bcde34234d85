// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/localcluster"
	"github.com/mlbatch/mlbatch/tools/localcluster/provider"
)

// keepVariable keeps the cluster for debugging, and makes the next run use it.
const keepVariable = "MLBATCH_E2E_KEEP"

func kept() bool { return os.Getenv(keepVariable) != "" }

// ownCluster is a local cluster that is created for the run.
type ownCluster struct {
	*provider.Cluster
	// trainingImage is the image archive that build has created.
	trainingImage string
	// rayImage is the image archive of the stand-in for Ray.
	rayImage string
	// s3Image is the image archive of the S3 server.
	s3Image string
	// leftByOthers is what existed on this machine before the cluster was created.
	leftByOthers []string
}

func newOwn() (*ownCluster, error) {
	port, err := strconv.Atoi(cmp.Or(os.Getenv("E2E_PORT"), "26444"))
	if err != nil {
		return nil, fmt.Errorf("E2E_PORT has to be a port: %w", err)
	}
	config := localcluster.Config{Name: "e2e", Port: port, Checkout: site.Checkout}
	site.Cluster, err = localcluster.New(config, site.Progress)
	return &ownCluster{Cluster: provider.New(config, site.Progress)}, err
}

func (*ownCluster) own() bool { return true }

func (o *ownCluster) begin() []env.Func {
	return []env.Func{
		timed("end an earlier run's cluster", plain(o.endEarlier)),
		timed("build", plain(o.build)),
		timed("start the cluster", envfuncs.CreateCluster(o.Cluster, site.Cluster.Config().Name)),
		timed("load images", plain(func(ctx context.Context) error { return site.LoadImages(ctx, o.trainingImage, o.rayImage, o.s3Image) })),
		timed("install the platform", plain(site.Install)),
		timed("make the kind of the stories", plain(o.makeKind)),
	}
}

// endEarlier removes the cluster of a run that was killed before its cleanup. This run must not
// use its objects or its controller.
func (o *ownCluster) endEarlier(ctx context.Context) error {
	if kept() {
		return nil
	}
	if err := o.Destroy(ctx); err != nil {
		return err
	}
	var err error
	o.leftByOthers, err = localcluster.Leaks(site.Cluster.Config())
	return err
}

func (o *ownCluster) build(ctx context.Context) error {
	if err := site.PackageCharts(ctx); err != nil {
		return err
	}
	var err error
	if o.trainingImage, err = site.Build(ctx); err != nil {
		return err
	}
	if o.rayImage, err = site.Ray(ctx); err != nil {
		return err
	}
	o.s3Image, err = site.S3(ctx)
	return err
}

// makeKind creates a CRD that the controller's configuration already names, and waits until its kind is served.
func (o *ownCluster) makeKind(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join("testdata", "rehearsals.yaml"))
	if err != nil {
		return err
	}
	kind := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &kind.Object); err != nil {
		return err
	}
	config, err := site.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	api, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(api.Create(ctx, kind)); err != nil {
		return err
	}
	return await(ctx, func(context.Context) (string, error) {
		_, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: "e2e.mlbatch.dev", Kind: "Rehearsal"}, "v1")
		return "", err
	})
}

// end removes the cluster. Anything that is left is an error.
func (o *ownCluster) end(ctx context.Context) error {
	if kept() {
		fmt.Fprintf(os.Stderr, "kept: export KUBECONFIG=%s\n", site.Cluster.KubeconfigPath())
		return nil
	}
	var unsaved error
	if !connected {
		unsaved = o.saveLogs(ctx)
	}
	if err := o.Destroy(ctx); err != nil {
		return errors.Join(unsaved, err)
	}
	leaks, err := localcluster.Leaks(site.Cluster.Config())
	leaks = slices.DeleteFunc(leaks, func(leak string) bool { return slices.Contains(o.leftByOthers, leak) })
	if err == nil && len(leaks) > 0 {
		err = fmt.Errorf("the cluster left behind: %q", leaks)
	}
	return errors.Join(unsaved, err)
}

// saveLogs copies the logs of a cluster on which the platform did not start, before the
// cluster's folder is removed.
func (o *ownCluster) saveLogs(ctx context.Context) error {
	saved := filepath.Join(site.Checkout, "dist", "e2e-logs")
	if err := os.RemoveAll(saved); err != nil {
		return fmt.Errorf("cannot remove the logs of an earlier run: %w", err)
	}
	if err := o.ExportLogs(ctx, saved); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "the set-up failed; logs were saved in %s\n", saved)
	return nil
}
