// SPDX-License-Identifier: Apache-2.0

package clustercheck

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// settings reads the configuration of Kueue and of the AppWrapper controller. It lists the
// ConfigMaps that their pods mount, that of the remembered devices, and no others.
func (r *reader) settings(ctx context.Context) {
	if d := r.deployment("kueue"); d != nil {
		r.kueue(*d, r.file(ctx, *d, "controller_manager_config.yaml"))
	}
	if d := r.deployment("appwrapper"); d != nil {
		r.signs(ctx, *d, r.file(ctx, *d, clusterstate.ControllerFile))
	}
}

func (r *reader) deployment(part string) *appsv1.Deployment {
	i := slices.IndexFunc(r.found.Deployments, func(d appsv1.Deployment) bool {
		p, known := parts.Of(d.Name)
		return known && p.Name == part
	})
	if i < 0 {
		return nil
	}
	return &r.found.Deployments[i]
}

// file is a file in a ConfigMap that a Deployment mounts, or empty.
func (r *reader) file(ctx context.Context, d appsv1.Deployment, key string) (text string) {
	if r.broken == nil {
		read, err := clusterstate.Mounted(ctx, r.client, d, key)
		r.note(err, checkup.ConfigMaps)
		text = read
	}
	return text
}

func (r *reader) kueue(d appsv1.Deployment, text string) {
	var c struct {
		ManageJobsWithoutQueueName bool            `json:"manageJobsWithoutQueueName"`
		WaitForPodsReady           *map[string]any `json:"waitForPodsReady"`
		FeatureGates               map[string]bool `json:"featureGates"`
		Integrations               struct {
			Frameworks []string `json:"frameworks"`
		} `json:"integrations"`
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil || text == "" {
		r.unreadable(d, "controller_manager_config.yaml")
		return
	}
	k := &checkup.Kueue{
		Deployment: d.Namespace + "/" + d.Name, ManagesAll: c.ManageJobsWithoutQueueName, WaitsForPods: c.WaitForPodsReady != nil && (*c.WaitForPodsReady)["enable"] != false,
		Frameworks: c.Integrations.Frameworks, Gates: map[string]bool{},
	}
	for gate, on := range c.FeatureGates {
		k.Gates[gate] = on
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if tag := parts.Tag(container.Image); k.Version == "" && isVersion(tag) {
			k.Version = tag
		}
		for _, arg := range slices.Concat(container.Command, container.Args) {
			if gates, found := strings.CutPrefix(arg, "--feature-gates="); found {
				setGates(k.Gates, gates)
			}
		}
	}
	r.found.Kueue = k
}

func isVersion(tag string) bool {
	_, err := version.ParseSemantic(tag)
	return err == nil
}

func setGates(gates map[string]bool, text string) {
	for _, setting := range strings.Split(text, ",") {
		gate, value, _ := strings.Cut(setting, "=")
		if on, err := strconv.ParseBool(value); err == nil {
			gates[gate] = on
		}
	}
}

func (r *reader) signs(ctx context.Context, d appsv1.Deployment, text string) {
	settings, err := nodesigns.Parse([]byte(text))
	if err != nil || text == "" {
		r.unreadable(d, clusterstate.ControllerFile)
		return
	}
	r.found.Signs, err = clusterstate.Remembered(ctx, r.client, settings, d.Namespace)
	r.note(err, checkup.ConfigMaps)
	r.found.DeclaredSlack, err = clusterstate.DeclaredSlack(ctx, r.client, d.Namespace)
	r.note(err, checkup.ConfigMaps)
}

// unreadable is a configuration that could not be understood, or is not where it is looked for.
func (r *reader) unreadable(d appsv1.Deployment, key string) {
	if _, known := r.found.Unread[checkup.ConfigMaps]; !known && r.broken == nil {
		r.found.Unread[checkup.ConfigMaps] = fmt.Sprintf("cannot read %s in a ConfigMap of the Deployment %s/%s: look at its volumes and at the file", key, d.Namespace, d.Name)
	}
}

// notServed: a list has no other reason not to be found.
func notServed(err error) bool {
	var unknown *meta.NoKindMatchError
	return errors.As(err, &unknown) || apierrors.IsNotFound(err)
}

func unreachable(err error) bool {
	var network *url.Error
	return errors.As(err, &network) || apierrors.IsUnauthorized(err)
}
