// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// poll is how long to wait for nodes and DNS, and how often to check. Both grow with the
// number of nodes.
type poll struct{ timeout, interval time.Duration }

func (c *Cluster) poll() poll {
	nodes := time.Duration(max(0, c.config.SimulatedNodes))
	return poll{3*time.Minute + nodes*300*time.Millisecond, 200*time.Millisecond + nodes*2*time.Millisecond}
}

// finish creates the cluster's own objects, and waits until nodes and DNS are ready. It
// may be repeated.
func (c *Cluster) finish(ctx context.Context) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if err := c.applyAll(ctx, api); err != nil {
		return err
	}
	if err := c.addSimulatedNodes(ctx, api); err != nil {
		return err
	}
	fmt.Fprintf(c.progress, "waiting for %d nodes\n", c.nodes())
	if err := c.poll().until(ctx, "nodes", func(ctx context.Context) error { return c.nodesReady(ctx, api) }); err != nil {
		return err
	}
	if c.config.Mode == Simulated {
		return nil // it has no DNS
	}
	return c.poll().until(ctx, "DNS", func(ctx context.Context) error { return dnsReady(ctx, api) })
}

// nodes is how many nodes the cluster has.
func (c *Cluster) nodes() int { return c.config.PlatformNodes + max(0, c.config.SimulatedNodes) }

// RESTConfig is an administrator's access to the running cluster.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	data, err := c.Kubeconfig()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cluster's kubeconfig: %w", err)
	}
	return config, nil
}

func (c *Cluster) client() (client.Client, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1               // the API server limits requests itself
	log.SetLogger(logr.Discard()) // a stack is printed after some time if nobody has chosen a logger
	api, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	return api, nil
}

// applyAll applies the cluster's own manifests.
func (c *Cluster) applyAll(ctx context.Context, api client.Client) error {
	if c.config.Mode == Simulated {
		return nil
	}
	for name, values := range map[string]any{
		"kube-proxy-rbac.yaml": nil,
		"coredns.yaml": map[string]string{
			"Image": coreDNSImage, "Build": c.coreDNSBuild(), "ClusterIP": dnsIP, "RealNodeLabel": realNodeLabel,
		},
	} {
		text, err := rendered(name, values)
		if err != nil {
			return err
		}
		if err := apply(ctx, api, text); err != nil {
			return fmt.Errorf("cannot apply %s: %w", name, err)
		}
	}
	return nil
}

// coreDNSBuild names the build in the CoreDNS image: a new build replaces the pod.
func (c *Cluster) coreDNSBuild() string {
	binary, _ := os.Readlink(filepath.Join(c.Dir(), "bin", "coredns"))
	return filepath.Base(filepath.Dir(binary))
}

func apply(ctx context.Context, api client.Client, manifests []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		config := client.ApplyConfigurationFromUnstructured(object)
		if err := api.Apply(ctx, config, client.FieldOwner("mlbatch-localcluster"), client.ForceOwnership); err != nil {
			return err
		}
	}
}

// addSimulatedNodes creates the KWOK nodes that do not exist yet.
func (c *Cluster) addSimulatedNodes(ctx context.Context, api client.Client) error {
	count := max(0, c.config.SimulatedNodes)
	errs := make([]error, count)
	workqueue.ParallelizeUntil(ctx, 16, count, func(i int) { errs[i] = c.addSimulatedNode(ctx, api, i) })
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("cannot add a simulated node: %w", err)
		}
	}
	return ctx.Err()
}

func (c *Cluster) addSimulatedNode(ctx context.Context, api client.Client, index int) error {
	text, err := rendered("simulated-node.yaml", map[string]any{
		"Index": index, "Label": simulatedNodeLabel, "GPUs": gpusPerNode, "OnlyGPUs": c.config.Mode == Real,
	})
	if err != nil {
		return err
	}
	node := &corev1.Node{}
	if err := yaml.Unmarshal(text, node); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(api.Create(ctx, node))
}

// until polls a condition. On timeout, the error says what was still missing.
func (p poll) until(ctx context.Context, what string, condition func(context.Context) error) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, p.interval, p.timeout, true, func(ctx context.Context) (bool, error) {
		missing = condition(ctx)
		return missing == nil, nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s did not become ready within %s: %w", what, p.timeout, missing)
	}
	return nil
}

func (c *Cluster) nodesReady(ctx context.Context, api client.Client) error {
	nodes := &corev1.NodeList{}
	if err := api.List(ctx, nodes); err != nil {
		return err
	}
	if want := c.nodes(); len(nodes.Items) < want {
		return fmt.Errorf("%d of %d nodes exist", len(nodes.Items), want)
	}
	for _, node := range nodes.Items {
		if err := ready(node); err != nil {
			return err
		}
	}
	return nil
}

// ready returns an error if no pod can be scheduled to a node: because of a condition,
// such as a full disk, or of the taint that a new node has at first.
func ready(node corev1.Node) error {
	reported := false
	for _, condition := range node.Status.Conditions {
		isReady := condition.Type == corev1.NodeReady
		reported = reported || isReady
		if isReady != (condition.Status == corev1.ConditionTrue) {
			return fmt.Errorf("node %s has %s=%s: %s", node.Name, condition.Type, condition.Status, condition.Message)
		}
	}
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	if !reported || tainted {
		return fmt.Errorf("node %s is not ready", node.Name)
	}
	return nil
}

func dnsReady(ctx context.Context, api client.Client) error {
	dns := &appsv1.Deployment{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, dns); err != nil {
		return err
	}
	if dns.Status.ObservedGeneration < dns.Generation || dns.Status.UpdatedReplicas < 1 || dns.Status.ReadyReplicas < 1 {
		return errors.New("no pod of Deployment kube-system/coredns is ready")
	}
	return nil
}
