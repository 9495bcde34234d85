// SPDX-License-Identifier: Apache-2.0

// Package nodesettings reads what the AppWrapper controller of a cluster knows of nodes: the files that its Deployment
// mounts, and the devices that it remembers.
package nodesettings

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/reading"
)

// File is the name of the controller's configuration file.
const File = "config.yaml"

// Mounted is the content of a file in a ConfigMap that a Deployment mounts, or empty.
func Mounted(ctx context.Context, c client.Reader, d appsv1.Deployment, file string) (text string, err error) {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		data, err := configMap(ctx, c, d.Namespace, v.ConfigMap.Name)
		if err != nil {
			return "", err
		}
		text += data[file]
	}
	return text, nil
}

// Remembered are the settings with the devices that nodes have shown.
func Remembered(ctx context.Context, c client.Reader, s nodesigns.Settings, namespace string) (nodesigns.Settings, error) {
	if len(s.SlackQueues()) == 0 { // nobody stores them
		return s, nil
	}
	data, err := configMap(ctx, c, namespace, nodesigns.DevicesName)
	return s.Remembering(data), err
}

// DeclaredSlack are the names of the slack queues that the file of the teams has.
func DeclaredSlack(ctx context.Context, c client.Reader, namespace string) (names []string, err error) {
	const name = nodesigns.DeclaredSlackName
	err = reading.Pages(ctx, c, func(page *corev1.ConfigMapList) {
		for _, m := range page.Items {
			if m.Name == name {
				names = slices.Sorted(maps.Keys(m.Data))
			}
		}
	}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	return names, err
}

// configMap is the data of a ConfigMap, or nothing if it does not exist. The right to list reaches that.
func configMap(ctx context.Context, c client.Reader, namespace, name string) (data map[string]string, err error) {
	err = reading.Pages(ctx, c, func(page *corev1.ConfigMapList) {
		for _, m := range page.Items {
			data = m.Data
		}
	}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	return data, err
}
