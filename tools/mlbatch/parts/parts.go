// SPDX-License-Identifier: Apache-2.0

// Package parts answers: what is the platform made of, and by what is each part told in
// a cluster and in values? It touches nothing.
package parts

import (
	"strings"

	"github.com/mlbatch/mlbatch/setup"
)

// Part is one operator of the platform.
type Part struct {
	// Name of its chart, and of its section in the values of the platform.
	Name string
	// Title is what people call it.
	Title string
	// deployments are ends of the names that its Deployments have, whoever has
	// installed them.
	deployments []string
	image       func(setup.Versions) string
}

// All is the order in which parts are shown.
var All = []Part{
	{"kueue", "Kueue", []string{"kueue-controller-manager"}, func(v setup.Versions) string { return v.Platform.Kueue.Image }},
	{
		"coscheduler", "Coscheduler", []string{"scheduler-plugins-scheduler", "scheduler-plugins-controller"},
		func(v setup.Versions) string { return v.Platform.Coscheduler.Image },
	},
	{"training-operator", "training operator", []string{"training-operator"}, func(v setup.Versions) string { return v.Platform.TrainingOperator.Image }},
	{"kuberay-operator", "KubeRay", []string{"kuberay-operator"}, func(v setup.Versions) string { return v.Platform.KuberayOperator.Image }},
	{"jobset", "JobSet", []string{"jobset-controller", "jobset-controller-manager"}, func(v setup.Versions) string { return v.Platform.JobSet.Image }},
	{"leaderworkerset", "LeaderWorkerSet", []string{"lws-controller-manager"}, func(v setup.Versions) string { return v.Platform.LeaderWorkerSet.Image }},
	{"appwrapper", "AppWrapper controller", []string{"appwrapper-controller-manager"}, func(v setup.Versions) string { return v.ControllerImage() }},
}

// Of finds the part that a Deployment is of, by its name.
func Of(deployment string) (Part, bool) {
	for _, p := range All {
		for _, end := range p.deployments {
			if strings.HasSuffix("-"+deployment, "-"+end) {
				return p, true
			}
		}
	}
	return Part{}, false
}

// Named finds a part by the name of its chart.
func Named(name string) (Part, bool) {
	for _, p := range All {
		if p.Name == name {
			return p, true
		}
	}
	return Part{}, false
}

// Enabled tells whether values, with the defaults of the chart, have the part switched on.
func (p Part) Enabled(values map[string]any) bool {
	section, _ := values[p.Name].(map[string]any)
	on, _ := section["enabled"].(bool)
	return on
}

// Tag is that of the image which this release has of the part.
func (p Part) Tag(versions setup.Versions) string { return Tag(p.image(versions)) }

// Tag of an image, or "" if it has none.
func Tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	at := strings.LastIndex(image, ":")
	if at <= strings.LastIndex(image, "/") {
		return ""
	}
	return image[at+1:]
}
