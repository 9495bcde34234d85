// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
)

// ControllerFile is the name of the configuration file of the AppWrapper controller.
const ControllerFile = "config.yaml"

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
	all, err := configMaps(ctx, c, namespace, nodesigns.DeclaredSlackName)
	for _, m := range all {
		if m.Name == nodesigns.DeclaredSlackName {
			names = slices.Sorted(maps.Keys(m.Data))
		}
	}
	return names, err
}

// configMap is the data of a ConfigMap, or nothing if it does not exist.
func configMap(ctx context.Context, c client.Reader, namespace, name string) (data map[string]string, err error) {
	all, err := configMaps(ctx, c, namespace, name)
	for _, m := range all {
		data = m.Data
	}
	return data, err
}

// configMaps lists one ConfigMap: the right to list reaches that.
func configMaps(ctx context.Context, c client.Reader, namespace, name string) ([]corev1.ConfigMap, error) {
	return List[corev1.ConfigMap](ctx, c, &corev1.ConfigMapList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
}
