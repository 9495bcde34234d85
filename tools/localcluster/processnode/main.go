// SPDX-License-Identifier: Apache-2.0

// Command processnode is a node of a simulated cluster. It replaces the kubelet, and
// runs the platform's pods as processes instead of containers. The platform is installed
// with the same charts, service accounts, roles and Services as on a real node.
//
// Each pod has a network namespace with an address on the bridge, a PID namespace, and a
// root folder with its volumes and the program that replaces its image. It gets its
// environment, a token of its service account, probes, restarts and a grace period. The
// keeper starts processnode in a PID namespace too: when processnode is killed, the kernel
// kills all pods before the keeper restarts it.
//
// It is not a general kubelet. It only runs pods with one container whose image it has a program
// for. The status of all other pods says why they wait. It ignores users,
// capabilities and resource limits: everything runs as the user who started the cluster.
// There is no DNS, no kubectl exec and no kubectl logs; logs are in the cluster's log
// folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == enterArgument {
		fmt.Fprintln(os.Stderr, enter(os.NewFile(orderFD, "order"))) // returns only if it fails
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var n node
	var address, pods, health string
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of a kubelet")
	flag.StringVar(&n.name, "name", "", "name of the node")
	flag.StringVar(&n.dir, "dir", "", "the cluster's folder")
	flag.StringVar(&n.label, "label", "", "label of the node, with the value true")
	flag.StringVar(&n.taint, "taint", "", "taint of the node")
	flag.StringVar(&n.bridge, "bridge", "", "bridge to attach pods to")
	flag.StringVar(&address, "address", "", "address of the bridge, with the prefix length of the network")
	flag.StringVar(&pods, "pods", "", "the part of the network that is for pods of this node")
	flag.StringVar(&health, "health", "", "address of the health endpoint")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	config.QPS = -1
	if n.api, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	if n.addresses, err = newAddresses(address, pods); err != nil {
		return err
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", health)
	if err != nil {
		return fmt.Errorf("cannot serve the node's health: %w", err)
	}
	go func() { _ = http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
	return n.runPods(ctx)
}
