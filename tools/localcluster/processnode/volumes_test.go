// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestVolumesHoldTheirSources(t *testing.T) {
	settings, none := corev1.LocalObjectReference{Name: "settings"}, corev1.LocalObjectReference{Name: "none"}
	pick := []corev1.KeyToPath{{Key: "mode", Path: "sub/mode.txt"}}
	for name, c := range map[string]struct {
		source  corev1.VolumeSource
		want    map[string]string
		failure string
	}{
		"all of a ConfigMap": {
			source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: settings}},
			want:   map[string]string{"level": "2", "mode": "fast"},
		},
		"one key of a ConfigMap": {
			source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: settings, Items: pick}},
			want:   map[string]string{"sub/mode.txt": "fast"},
		},
		"a key that is not there": {
			source:  corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cert", Items: pick}},
			failure: "cannot fill the volume v: missing key mode",
		},
		"a key that need not be there": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cert", Items: pick, Optional: ptr.To(true)}},
			want:   map[string]string{},
		},
		"a Secret": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cert"}},
			want:   map[string]string{"tls.crt": "certificate", "tls.key": "key"},
		},
		"a Secret that is not there": {
			source:  corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}},
			failure: `cannot fill the volume v: Secret "none" not found`,
		},
		"a ConfigMap that need not be there": {
			source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: none, Optional: ptr.To(true)}},
			want:   map[string]string{},
		},
		"what the downward API says": {
			source: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
			}}},
			want: map[string]string{"name": "operator-1"},
		},
		"what a service account is given": {
			source: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "api"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: settings, Items: []corev1.KeyToPath{{Key: "level", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
				}}},
			}}},
			want: map[string]string{"token": "token for api", "ca.crt": "2", "namespace": "system"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := contents(one(func(*corev1.Pod, *corev1.Container) {}), corev1.Volume{Name: "v", VolumeSource: c.source}, stored)
			if c.failure != "" {
				if err == nil || err.Error() != c.failure {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for path, data := range files {
				got[path] = string(data)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// For example, a certificate is issued later, and another one is removed.
func TestStoreReplacesTheContentOfAFolder(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []map[string]string{{}, {"tls.crt": "1", "sub/x": "1"}, {"tls.crt": "2", "tls.key": "2", "sub/x": "1"}, {"tls.key": "3", "sub/x": "3"}} {
		files := map[string][]byte{}
		for path, text := range want {
			files[path] = []byte(text)
		}
		if err := store(dir, files); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				data, _ := os.ReadFile(path)
				got[strings.TrimPrefix(path, dir+"/")] = string(data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// This node supports only what the platform's pods need.
func TestUnsupportedPodsAreRefused(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod, *corev1.Container){
		"": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cert"}}},
			}
		},
		"does not support more than one container": func(p *corev1.Pod, c *corev1.Container) {
			p.Spec.InitContainers = []corev1.Container{*c}
		},
		"does not support host networking":                    func(p *corev1.Pod, _ *corev1.Container) { p.Spec.HostNetwork = true },
		"does not support a restart policy other than Always": func(p *corev1.Pod, _ *corev1.Container) { p.Spec.RestartPolicy = corev1.RestartPolicyNever },
		"does not support envFrom":                            func(_ *corev1.Pod, c *corev1.Container) { c.EnvFrom = make([]corev1.EnvFromSource, 1) },
		"does not support a startup probe":                    func(_ *corev1.Pod, c *corev1.Container) { c.StartupProbe = &corev1.Probe{} },
		"does not support volumes such as data": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
		},
	} {
		err := refusal(one(change))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The folder also holds the hosts file, for instance.
func TestAPodWithoutVolumesHasAFolder(t *testing.T) {
	w := &worker{node: &node{dir: t.TempDir()}, pod: one(func(*corev1.Pod, *corev1.Container) {}), over: t.Context()}
	w.pod.Spec.Volumes = nil
	if err := w.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.folder()); err != nil {
		t.Error(err)
	}
}
