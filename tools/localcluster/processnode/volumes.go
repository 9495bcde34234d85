// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/tools/artifacts/atomicfile"
)

// projections returns the sources of a volume. A ConfigMap, Secret or downward API volume is a
// projected volume with one source; an emptyDir has none.
func projections(v corev1.Volume) []corev1.VolumeProjection {
	switch {
	case v.Projected != nil:
		return v.Projected.Sources
	case v.ConfigMap != nil:
		return []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items, Optional: v.ConfigMap.Optional,
		}}}
	case v.Secret != nil:
		return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items, Optional: v.Secret.Optional,
		}}}
	case v.DownwardAPI != nil:
		return []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: v.DownwardAPI.Items}}}
	}
	return nil
}

// contents returns the files of a volume by path.
func contents(pod *corev1.Pod, v corev1.Volume, s sources) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, p := range projections(v) {
		if err := project(files, pod, p, s); err != nil {
			return nil, fmt.Errorf("cannot fill the volume %s: %w", v.Name, err)
		}
	}
	return files, nil
}

func project(files map[string][]byte, pod *corev1.Pod, p corev1.VolumeProjection, s sources) error {
	switch {
	case p.ServiceAccountToken != nil:
		token, err := s.token(p.ServiceAccountToken)
		files[p.ServiceAccountToken.Path] = []byte(token)
		return err
	case p.ConfigMap != nil:
		data, err := s.content("ConfigMap", p.ConfigMap.Name, p.ConfigMap.Optional)
		return cmp.Or(err, pick(files, data, p.ConfigMap.Items, p.ConfigMap.Optional))
	case p.Secret != nil:
		data, err := s.content("Secret", p.Secret.Name, p.Secret.Optional)
		return cmp.Or(err, pick(files, data, p.Secret.Items, p.Secret.Optional))
	case p.DownwardAPI != nil:
		for _, item := range p.DownwardAPI.Items {
			value, err := field(pod, ptr.Deref(item.FieldRef, corev1.ObjectFieldSelector{}).FieldPath)
			if err != nil {
				return err
			}
			files[item.Path] = []byte(value)
		}
		return nil
	}
	return fmt.Errorf("this node does not support the source %v", p)
}

// pick copies all keys, or only the listed items, under their paths.
func pick(files, data map[string][]byte, items []corev1.KeyToPath, optional *bool) error {
	for key, value := range data {
		if len(items) == 0 {
			files[key] = value
		}
	}
	for _, item := range items {
		value, found := data[item.Key]
		switch {
		case found:
			files[item.Path] = value
		case !ptr.Deref(optional, false):
			return fmt.Errorf("missing key %s", item.Key)
		}
	}
	return nil
}

// store makes a folder hold exactly these files. It replaces each file atomically.
func store(dir string, files map[string][]byte) error {
	for path, data := range files {
		at := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Write(at, 0o600, data); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, kept := files[entry.Name()]; !kept && entry.Type().IsRegular() {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
