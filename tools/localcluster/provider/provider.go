// SPDX-License-Identifier: Apache-2.0

// Package provider lets sigs.k8s.io/e2e-framework create, use and remove a local cluster. It
// only translates to package localcluster.
package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// Cluster is a local cluster as the framework sees it. The "With" methods cannot fail:
// Create returns their errors.
type Cluster struct {
	config   localcluster.Config
	progress io.Writer
	mistake  error
}

var _ support.E2EClusterProviderWithImageLoader = (*Cluster)(nil)

// New describes a cluster to the framework; it changes nothing. Progress receives a line for
// each step that takes time.
func New(config localcluster.Config, progress io.Writer) *Cluster {
	return &Cluster{config: config, progress: progress}
}

// SetDefaults does nothing: localcluster fills in defaults.
func (c *Cluster) SetDefaults() support.E2EClusterProvider { return c }

// WithName chooses the cluster's name.
func (c *Cluster) WithName(name string) support.E2EClusterProvider {
	c.config.Name = name
	return c
}

// WithPath chooses the checkout that the cluster's programs are built from.
func (c *Cluster) WithPath(path string) support.E2EClusterProvider {
	c.config.Checkout = path
	return c
}

// WithVersion chooses a version of Kubernetes among those that setup/versions.yaml has.
func (c *Cluster) WithVersion(version string) support.E2EClusterProvider {
	versions, err := setup.Load()
	if err == nil {
		c.config.Kubernetes = setup.Minor(version)
		versions, err = versions.On(c.config.Kubernetes)
	}
	if known := versions.LocalCluster.Kubernetes; err == nil && version != known {
		err = fmt.Errorf("a local cluster of this checkout runs Kubernetes %s, not %s; change setup/versions.yaml or omit the version", known, version)
	}
	c.mistake = errors.Join(c.mistake, err)
	return c
}

// WithOpts applies options.
func (c *Cluster) WithOpts(options ...support.ClusterOpts) support.E2EClusterProvider {
	for _, option := range options {
		option(c)
	}
	return c
}

// Create starts the cluster, or updates a running one, and returns the path of its
// kubeconfig. It takes no arguments: pass a configuration to New or CreateWithConfig.
func (c *Cluster) Create(ctx context.Context, args ...string) (string, error) {
	if c.mistake != nil {
		return "", c.mistake
	}
	if len(args) > 0 {
		return "", fmt.Errorf("a local cluster takes no arguments such as %q; pass a configuration instead", args[0])
	}
	cluster, err := c.cluster()
	if err != nil {
		return "", err
	}
	return cluster.KubeconfigPath(), cluster.Up(ctx)
}

// CreateWithConfig is Create with a YAML file that has fields of localcluster.Config, such as
// "port: 26445". They override those of New.
func (c *Cluster) CreateWithConfig(ctx context.Context, file string) (string, error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(data, &c.config)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the configuration of a local cluster: %w", err)
	}
	return c.Create(ctx)
}

// GetKubeconfig is the path of the kubeconfig, or "" if the cluster does not run.
func (c *Cluster) GetKubeconfig() string {
	path, err := c.GenerateKubeconfig()
	if err != nil {
		return ""
	}
	return path
}

// GenerateKubeconfig is the path of a running cluster's kubeconfig.
func (c *Cluster) GenerateKubeconfig(...string) (string, error) {
	cluster, err := c.cluster()
	if err != nil {
		return "", err
	}
	_, err = cluster.Kubeconfig()
	return cluster.KubeconfigPath(), err
}

// GetKubectlContext is the only context of that kubeconfig.
func (c *Cluster) GetKubectlContext() string {
	cluster, err := c.cluster()
	if err != nil {
		return ""
	}
	return cluster.Config().Name
}

// KubernetesRestConfig is the administrator's config, or nil if the cluster does not run.
func (c *Cluster) KubernetesRestConfig() *rest.Config {
	cluster, err := c.cluster()
	if err != nil {
		return nil
	}
	config, err := cluster.RESTConfig()
	if err != nil {
		return nil
	}
	return config
}

// controlPlaneTimeout limits the wait for an API server that was ready before.
const controlPlaneTimeout = time.Minute

// WaitForControlPlane waits until the API server is ready for this client. Create waits for
// everything else.
func (c *Cluster) WaitForControlPlane(ctx context.Context, client klient.Client) error {
	api, err := kubernetes.NewForConfig(client.RESTConfig())
	if err != nil {
		return fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	var missing error
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, controlPlaneTimeout, true, func(ctx context.Context) (bool, error) {
		_, missing = api.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return missing == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the API server did not become ready: %w", errors.Join(missing, ctx.Err()))
	}
	return nil
}

// LoadImage fails: there is no Docker that has images by name.
func (c *Cluster) LoadImage(_ context.Context, image string, _ ...string) error {
	return fmt.Errorf("cannot load image %s by name without Docker; save it to an archive and use LoadImageArchive", image)
}

// LoadImageArchive makes the images of an OCI or Docker archive available to
// pods with imagePullPolicy Never or IfNotPresent.
func (c *Cluster) LoadImageArchive(ctx context.Context, archive string, _ ...string) error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	return cluster.LoadImages(ctx, archive)
}

// ExportLogs copies the logs of programs and of pods into folders below dest.
func (c *Cluster) ExportLogs(_ context.Context, dest string) error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	for _, logs := range []string{cluster.LogDir(), cluster.PodLogDir()} {
		err := os.CopyFS(filepath.Join(dest, filepath.Base(logs)), os.DirFS(logs))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the cluster failed before it had logs
			return fmt.Errorf("cannot save the logs of cluster %q: %w", cluster.Config().Name, err)
		}
	}
	return nil
}

// Destroy stops the cluster and removes everything of it.
func (c *Cluster) Destroy(context.Context) error {
	cluster, err := c.cluster()
	if err != nil {
		return err
	}
	return cluster.Down()
}

func (c *Cluster) cluster() (*localcluster.Cluster, error) {
	return localcluster.New(c.config, c.progress)
}
