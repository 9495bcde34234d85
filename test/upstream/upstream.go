// SPDX-License-Identifier: Apache-2.0

// Package upstream builds and runs the controller of AppWrapper 1.2.2, with which tests compare ours. It
// knows only its program.
package upstream

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/tools/artifacts/components"
)

// Namespace is where the controller has its configuration and its Lease.
const Namespace = "appwrapper-system"

var component = components.Component{
	Name: "appwrapper-upstream", Folder: "upstream",
	Packages: []string{"github.com/project-codeflare/appwrapper/cmd"}, Binaries: []string{"cmd"},
}

// Build builds the program from its Go module, once, and returns its path.
func Build(ctx context.Context, checkout string, progress io.Writer) (string, error) {
	cache, err := components.UserCache(checkout)
	if err != nil {
		return "", err
	}
	built, err := cache.Get(ctx, progress, component)
	if err != nil {
		return "", fmt.Errorf("cannot build the controller of AppWrapper 1.2.2: %w", err)
	}
	return built["cmd"], nil
}

// Configuration is the object from which the program reads a file that ours reads, too.
func Configuration(file string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "appwrapper-operator-config"},
		Data:       map[string]string{"config.yaml": file},
	}
}

// asInAPod mounts a private /run/secrets with the namespace, where a program in a pod looks for
// it to elect a leader.
const asInAPod = `mount -t tmpfs tmpfs /run &&
	mkdir -p /run/secrets/kubernetes.io/serviceaccount &&
	printf %s "$NAMESPACE" > /run/secrets/kubernetes.io/serviceaccount/namespace &&
	exec "$@"`

// Command runs the program, in the place of the shell that prepares it. It needs root.
func Command(program, kubeconfig string) *exec.Cmd {
	cmd := exec.Command("unshare", "--mount", "sh", "-c", asInAPod, "sh", program, "--kubeconfig="+kubeconfig)
	cmd.Env = append(os.Environ(), "NAMESPACE="+Namespace)
	return cmd
}
