// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// The limits of every pod here, and the resulting settings of the kernel.
const (
	memoryLimit = "96Mi"
	memoryMax   = "100663296"
	cpuLimit    = "250m"
	cpuMax      = "25000 100000"
)

// limits runs a pod and reads its limits from the cgroups of the pod and its container.
func limits(ctx context.Context) (string, error) {
	api, err := connect()
	if err != nil {
		return "", err
	}
	pod := holding("within", "32")
	err = reach(ctx, api, pod, func() bool { return pod.Status.Phase == corev1.PodRunning })
	if err != nil {
		return "", err
	}
	of, err := cgroupOf(pod)
	if err != nil {
		return "", err
	}
	container, err := holder(ctx, of)
	if err != nil {
		return "", err
	}
	for _, dir := range []string{of, container} {
		for file, want := range map[string]string{"memory.max": memoryMax, "cpu.max": cpuMax} {
			got, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return "", fmt.Errorf("cannot read a limit: %w", err)
			}
			if strings.TrimSpace(string(got)) != want {
				return "", fmt.Errorf("%s of %s is %q, want %q", file, dir, got, want)
			}
		}
	}
	return fmt.Sprintf("memory.max %s, cpu.max %s of the pod and its container", memoryMax, cpuMax), nil
}

// outOfMemory runs a pod that exceeds its memory limit, next to one that does not.
func outOfMemory(ctx context.Context) (string, error) {
	api, err := connect()
	if err != nil {
		return "", err
	}
	pod := holding("above", "192")
	if err := reach(ctx, api, pod, func() bool { return pod.Status.Phase == corev1.PodFailed }); err != nil {
		return "", err
	}
	ended := pod.Status.ContainerStatuses[0].State.Terminated
	if ended == nil || ended.Reason != "OOMKilled" {
		return "", fmt.Errorf("its container ended with %v, want the reason OOMKilled", ended)
	}
	within := holding("within", "32")
	if err := api.Get(ctx, client.ObjectKeyFromObject(within), within); err != nil {
		return "", fmt.Errorf("cannot read the pod that keeps to its limit: %w", err)
	}
	if within.Status.Phase != corev1.PodRunning {
		return "", fmt.Errorf("the pod that keeps to its limit is %s", within.Status.Phase)
	}
	return fmt.Sprintf("%s, exit code %d; its neighbour runs on", ended.Reason, ended.ExitCode), nil
}

// holding is a pod that uses that many MiB of memory.
func holding(name, mebibytes string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "holder", Image: localcluster.WorkloadImage, Args: []string{"hold", mebibytes},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
					corev1.ResourceMemory: resource.MustParse(memoryLimit), corev1.ResourceCPU: resource.MustParse(cpuLimit),
				}},
			}},
		},
	}
}

// reach creates a pod and waits until it is as wanted.
func reach(ctx context.Context, api client.Client, pod *corev1.Pod, wanted func() bool) error {
	if err := api.Create(ctx, pod); err != nil {
		return fmt.Errorf("cannot make the pod %s: %w", pod.Name, err)
	}
	err := until(ctx, "the pod "+pod.Name+" has come so far", func() (bool, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && wanted(), err
	})
	if err != nil {
		return fmt.Errorf("%w; it is %s: %v", err, pod.Status.Phase, pod.Status.ContainerStatuses)
	}
	return nil
}

// cgroupOf returns the cgroup of a pod below that of the cluster.
func cgroupOf(pod *corev1.Pod) (string, error) {
	var found string
	for _, top := range tops() {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == "pod"+string(pod.UID) {
				found = path
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("cannot look through the cluster's cgroups: %w", err)
		}
	}
	if found == "" {
		return "", fmt.Errorf("the pod %s (%s) has no cgroup below %v", pod.Name, pod.UID, tops())
	}
	return found, nil
}

// holder returns the cgroup of the container that uses the memory, in a pod's cgroup. The
// sandbox uses a few MiB.
func holder(ctx context.Context, pod string) (dir string, err error) {
	err = until(ctx, "a container in "+pod+" holds memory", func() (bool, error) {
		usages, err := filepath.Glob(filepath.Join(pod, "*", "memory.current"))
		for _, usage := range usages {
			current, err := os.ReadFile(usage)
			if err != nil {
				return false, err
			}
			if bytes, err := strconv.ParseUint(strings.TrimSpace(string(current)), 10, 64); err == nil && bytes >= 32<<20 {
				dir = filepath.Dir(usage)
			}
		}
		return dir != "", err
	})
	return dir, err
}

func connect() (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(clusters, localcluster.DefaultName, "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the cluster's kubeconfig: %w", err)
	}
	return client.New(config, client.Options{})
}

// until checks once a second, for up to five minutes of this machine's clock.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(context.Context) (bool, error) {
		var is bool
		is, last = done()
		return is, nil
	})
	if err != nil {
		return fmt.Errorf("cannot see that %s: %w", what, errors.Join(err, last))
	}
	return nil
}
