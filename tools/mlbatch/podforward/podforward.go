// SPDX-License-Identifier: Apache-2.0

// Package podforward answers: what listens on a port of a pod? It passes on connections to this machine.
package podforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Listener says where to listen.
type Listener struct {
	Addresses []string
	// Ports are LOCAL:REMOTE, or the same port on both sides, or :REMOTE for any free one.
	Ports []string
	// Out gets a line for each port and connection, and Err what is wrong with one connection.
	Out, Err io.Writer
}

// Check returns an error if there is something wrong with the ports or the addresses.
func (l Listener) Check() error {
	_, err := l.forwarder(context.Background(), nil)
	return err
}

func (l Listener) forwarder(ctx context.Context, dialer httpstream.Dialer) (*portforward.PortForwarder, error) {
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, l.Addresses, l.Ports, make(chan struct{}), l.Out, l.Err)
	if err != nil {
		return nil, fmt.Errorf("cannot read the ports: %w: write LOCAL:REMOTE, such as 8888:8888, or REMOTE", err)
	}
	return forwarder, nil
}

// Run passes on connections until its context ends, which is no error, or until the pod is lost.
func Run(ctx context.Context, config *rest.Config, pod corev1.Pod, l Listener) error {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	to := typed.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("portforward").URL()
	dialer, err := connect(config, to)
	if err != nil {
		return err
	}
	forwarder, err := l.forwarder(ctx, dialer)
	if err != nil {
		return err
	}
	err = forwarder.ForwardPorts()
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, portforward.ErrLostConnectionToPod):
		return fmt.Errorf("pod %s has ended, or the connection is lost: run the command again", pod.Name)
	case err != nil:
		return fmt.Errorf("cannot forward ports of pod %s: %w", pod.Name, printing.OneLineError(err))
	}
	return nil
}

// connect prefers WebSockets, and falls back to SPDY for API servers and proxies that know no others.
func connect(config *rest.Config, to *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	sockets, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	return portforward.NewFallbackDialerForStreaming(sockets, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
