// SPDX-License-Identifier: Apache-2.0

// Command processnode is the first node of a simulated cluster: it takes the
// kubelet's place, and runs the platform's pods as processes of this machine
// instead of containers. So the platform is installed by the same charts, under
// the same service accounts and roles, and is reached through the same Services.
//
// Each pod has a network namespace with an address on the bridge, a PID namespace,
// and a root folder with its volumes and the one program that stands for its image.
// It is given its environment, a token of its service account, probes, restarts, and
// time to end. The keeper starts processnode in a PID namespace too: when processnode
// is killed, the kernel ends all pods before the keeper starts the next one.
//
// It is no general kubelet. It runs pods of one container, with the images that it
// has programs for, and says of all others why they wait. It knows no users,
// capabilities or limits of resources: everything runs as the user who has started
// the cluster. There is no DNS, and kubectl can neither show logs, which lie in the
// cluster's log folder, nor execute commands.
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
	var address string
	kubeconfig := flag.String("kubeconfig", "", "of a kubelet")
	flag.StringVar(&n.name, "name", "", "of the node")
	flag.StringVar(&n.dir, "dir", "", "the cluster's folder")
	flag.StringVar(&n.label, "label", "", "that the node has with the value true")
	flag.StringVar(&n.taint, "taint", "", "that keeps away pods that do not tolerate it")
	flag.StringVar(&n.bridge, "bridge", "", "that pods hang on")
	flag.StringVar(&address, "address", "", "of the bridge, with the length of the pods' prefix")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	config.QPS = -1
	if n.api, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	if n.addresses, err = newAddresses(address); err != nil {
		return err
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", healthAddress)
	if err != nil {
		return fmt.Errorf("cannot say that the node is well: %w", err)
	}
	go func() { _ = http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
	return n.runPods(ctx)
}

// healthAddress is where a kubelet says that it is well.
const healthAddress = "127.0.0.1:10248"
