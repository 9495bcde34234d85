// SPDX-License-Identifier: Apache-2.0

// Package podexec runs a command in a container of a pod, as kubectl exec does.
package podexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	remoteexec "k8s.io/client-go/util/exec"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Command is what runs in a container, and how it talks with the user.
type Command struct {
	Container string
	Line      []string
	// In is passed on, if it is not nil.
	In       io.Reader
	Out, Err io.Writer
	// TTY: In and Out are a terminal, which also gets what the command writes to its standard error.
	TTY bool
}

// Ended is the error of a command that ended with this exit code, which is not 0.
type Ended int

func (e Ended) Error() string { return fmt.Sprintf("the command ended with exit code %d", int(e)) }

// Run waits until the command has ended.
func Run(ctx context.Context, config *rest.Config, pod corev1.Pod, c Command) error {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	options := &corev1.PodExecOptions{Container: c.Container, Command: c.Line, Stdin: c.In != nil, Stdout: true, Stderr: !c.TTY, TTY: c.TTY}
	to := typed.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").VersionedParams(options, scheme.ParameterCodec).URL()
	remote, err := connect(config, to)
	if err == nil {
		err = c.stream(ctx, remote)
	}
	if ended := (remoteexec.CodeExitError{}); errors.As(err, &ended) {
		return Ended(ended.Code)
	}
	if err != nil {
		return fmt.Errorf("cannot run the command in pod %s: %w", pod.Name, printing.OneLineError(err))
	}
	return nil
}

// connect prefers WebSockets, and falls back to SPDY for API servers and proxies that know no others.
func connect(config *rest.Config, to *url.URL) (remotecommand.Executor, error) {
	sockets, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, to.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, to)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(sockets, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

func (c Command) stream(ctx context.Context, remote remotecommand.Executor) error {
	options := remotecommand.StreamOptions{Stdin: c.In, Stdout: c.Out, Stderr: c.Err, Tty: c.TTY}
	if !c.TTY {
		return remote.StreamWithContext(ctx, options)
	}
	terminal := term.TTY{In: c.In, Out: c.Out, Raw: true}
	options.Stderr, options.TerminalSizeQueue = nil, sizes{terminal.MonitorSize(terminal.GetSize())}
	return terminal.Safe(func() error { return remote.StreamWithContext(ctx, options) })
}

// sizes are those of the terminal window, as it changes.
type sizes struct{ term.TerminalSizeQueue }

// Next waits until the window has another size; nil if it will have none.
func (s sizes) Next() *remotecommand.TerminalSize {
	if s.TerminalSizeQueue == nil {
		return nil
	}
	next := s.TerminalSizeQueue.Next()
	if next == nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: next.Width, Height: next.Height}
}
