// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// refusal returns an error if this node does not support a pod.
func refusal(pod *corev1.Pod) error {
	for _, unsupported := range []struct {
		wanted bool
		what   string
	}{
		{len(pod.Spec.Containers)+len(pod.Spec.InitContainers) > 1, "more than one container"},
		{pod.Spec.HostNetwork, "host networking"},
		{pod.Spec.RestartPolicy != corev1.RestartPolicyAlways, "a restart policy other than Always"},
		{pod.Spec.Containers[0].StartupProbe != nil, "a startup probe"},
		{pod.Spec.Containers[0].EnvFrom != nil, "envFrom"},
	} {
		if unsupported.wanted {
			return fmt.Errorf("this node runs the platform's pods as processes and does not support %s", unsupported.what)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.EmptyDir == nil && projections(v) == nil {
			return fmt.Errorf("this node runs the platform's pods as processes and does not support volumes such as %s", v.Name)
		}
	}
	return nil
}

// begin starts the pod's container as a process.
func (w *worker) begin(ctx context.Context) (*exec.Cmd, error) {
	if err := refusal(w.pod); err != nil {
		return nil, err
	}
	program, err := w.program()
	if err != nil {
		return nil, err
	}
	if err := w.fill(ctx); err != nil {
		return nil, err
	}
	w.watching.Do(func() { w.keepFilled(ctx) })
	o, err := w.order(ctx, program)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(w.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return w.node.start(o, log)
}

// program is the program to run instead of the pod's image.
func (w *worker) program() (plan.Image, error) {
	var known map[string]plan.Image
	image := w.pod.Spec.Containers[0].Image
	err := plan.Read(w.node.dir, plan.ImagesFile, &known)
	program, found := known[image]
	if err != nil || !found {
		return program, fmt.Errorf("this node runs the platform's pods as processes and has no program for image %s", image)
	}
	return program, nil
}

// order describes the container's process.
func (w *worker) order(ctx context.Context, program plan.Image) (order, error) {
	container := w.pod.Spec.Containers[0]
	vars, err := environment(w.pod, w.given(), apiSources(ctx, w.node.api, w.pod))
	if err != nil {
		return order{}, err
	}
	command := container.Command
	if len(command) == 0 {
		command = []string{program.Path}
	}
	o := order{
		Root: filepath.Join(w.folder(), "root"), Host: w.pod.Name, Dir: "/" + container.WorkingDir, Env: vars,
		Address: fmt.Sprintf("%s/%d", w.address, w.node.addresses.bits),
		Args:    append(expandAll(command, vars), expandAll(container.Args, vars)...),
		Mounts:  []mount{{"/dev", "/dev"}, {program.File, program.Path}, {w.hostsFile(), "/etc/hosts"}},
	}
	for path, file := range program.More {
		o.Mounts = append(o.Mounts, mount{file, path})
	}
	for _, m := range container.VolumeMounts {
		o.Mounts = append(o.Mounts, mount{filepath.Join(w.volume(m.Name), m.SubPath), m.MountPath})
	}
	return o, os.MkdirAll(o.Root, 0o755)
}

// given returns the variables that every container gets.
func (w *worker) given() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "HOSTNAME=" + w.pod.Name,
		"KUBERNETES_SERVICE_HOST=" + w.node.addresses.node.String(), "KUBERNETES_SERVICE_PORT=" + apiServerPort,
	}
}

// apiServerPort is the API server's port on the bridge.
const apiServerPort = "6443"

func (w *worker) volume(name string) string { return filepath.Join(w.folder(), "volumes", name) }
func (w *worker) hostsFile() string         { return filepath.Join(w.folder(), "hosts") }
func (w *worker) logFile() string {
	return filepath.Join(w.node.dir, plan.LogDir, w.pod.Namespace+"_"+w.pod.Name+".log")
}

// fill writes the current content of all volumes.
func (w *worker) fill(ctx context.Context) error {
	w.filling.Lock()
	defer w.filling.Unlock()
	if w.over.Err() != nil {
		return context.Canceled // the folder may already be removed
	}
	if err := os.MkdirAll(w.folder(), 0o755); err != nil { // for the hosts file
		return err
	}
	from := apiSources(ctx, w.node.api, w.pod)
	for _, v := range w.pod.Spec.Volumes {
		if err := os.MkdirAll(w.volume(v.Name), 0o755); err != nil {
			return err
		}
		if v.EmptyDir != nil {
			continue
		}
		files, err := contents(w.pod, v, from)
		if err != nil {
			return err
		}
		if err := store(w.volume(v.Name), files); err != nil {
			return fmt.Errorf("cannot fill the volume %s: %w", v.Name, err)
		}
	}
	return os.WriteFile(w.hostsFile(), []byte("127.0.0.1 localhost\n"+w.state.ip+" "+w.pod.Name+"\n"), 0o644)
}

// tokenRefresh is how often tokens are renewed: they are valid for an hour.
const tokenRefresh = 40 * time.Minute

// keepFilled fills the volumes again when their sources change.
func (w *worker) keepFilled(ctx context.Context) {
	changes := make(chan struct{}, 1)
	watchSources(ctx, w.node.api, w.pod, func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	})
	go w.refill(ctx, changes)
}

// refill fills the volumes after each change, to refresh tokens, and to retry.
func (w *worker) refill(ctx context.Context, changes <-chan struct{}) {
	next := tokenRefresh
	for {
		select {
		case <-w.over.Done():
			return
		case <-ctx.Done():
			return
		case <-changes:
		case <-time.After(next):
		}
		next = tokenRefresh
		if err := w.fill(ctx); err != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
			fmt.Fprintf(os.Stderr, "%s/%s: %v\n", w.pod.Namespace, w.pod.Name, err)
			next = retry
		}
	}
}
