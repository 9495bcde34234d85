// SPDX-License-Identifier: Apache-2.0

// Package parts is the one table of what the platform consists of. Charts are packaged,
// images built, and clusters checked by it. It touches nothing.
package parts

import (
	"path"
	"strings"

	"github.com/mlbatch/mlbatch/setup"
)

// Part is one operator of the platform.
type Part struct {
	// Name of its chart, its section in the values of the platform, and its entry in
	// setup/versions.yaml.
	Name string
	// Title is what people call it.
	Title string
	// Optional parts are off by default.
	Optional bool
	// Own is our own controller, which is built from the checkout.
	Own   bool
	Chart Chart
	// Deployments are ends of the names that its Deployments have, whoever has
	// installed them.
	Deployments []string
	Images      []Image
	// Component says how its programs are built for local clusters.
	Component Component
}

// Chart says where the chart of a part comes from: a folder of this repository, or one of
// the upstream module.
type Chart struct {
	Folder, Upstream string
	// CRDs are files of the module that go into a chart of ours: those of the kinds that
	// the operator watches, and no others.
	CRDs []string
	// Copies are other files of the module, by their paths in a chart of ours.
	Copies map[string]string
	// Edits change templates of an upstream chart.
	Edits []Edit
}

// Edit replaces a text that a file has once.
type Edit struct{ File, From, To string }

// Image is one that the pods of a part run.
type Image struct {
	// Token is its name in the values of charts, such as @kueue.repository@.
	Token string
	// Title is what it is, unless it is the operator.
	Title string
	of    func(setup.Operator) string
	// Package is the main package of its program, and Path where the image has it. An
	// image without a package is pulled as it is.
	Package, Path string
}

// Component is one build of all programs of a part.
type Component struct {
	// Module is a folder of tools/artifacts/components.
	Module string
	// KubernetesVersion stamps the programs with the version of Kubernetes that they are
	// built from: a scheduler compares it with the API server's.
	KubernetesVersion bool
}

func main(o setup.Operator) string       { return o.Image }
func controller(o setup.Operator) string { return o.ControllerImage }
func initial(o setup.Operator) string    { return o.InitImage }

// All is the table, in the order in which parts are shown.
var All = []Part{
	{
		Name: "kueue", Title: "Kueue",
		Chart:       Chart{Upstream: "charts/kueue"},
		Deployments: []string{"kueue-controller-manager"},
		Images:      []Image{{Token: "kueue", of: main, Package: "sigs.k8s.io/kueue/cmd/kueue", Path: "/manager"}},
		Component:   Component{Module: "kueue"},
	},
	{
		Name: "coscheduler", Title: "Coscheduler",
		Chart: Chart{Folder: "charts/coscheduler", CRDs: []string{
			"config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
			"config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml", // the PodGroup controller stops without them
		}},
		Deployments: []string{"scheduler-plugins-scheduler", "scheduler-plugins-controller"},
		Images: []Image{
			{Token: "coscheduler", of: main, Package: "sigs.k8s.io/scheduler-plugins/cmd/scheduler", Path: "/bin/kube-scheduler"},
			{
				Token: "coscheduler-controller", Title: "its PodGroup controller", of: controller,
				Package: "sigs.k8s.io/scheduler-plugins/cmd/controller", Path: "/bin/controller",
			},
		},
		Component: Component{Module: "kubernetes", KubernetesVersion: true},
	},
	{
		Name: "training-operator", Title: "training operator",
		Chart: Chart{
			Folder: "charts/training-operator",
			CRDs: []string{
				"manifests/base/crds/kubeflow.org_jaxjobs.yaml",
				"manifests/base/crds/kubeflow.org_mpijobs.yaml",
				"manifests/base/crds/kubeflow.org_paddlejobs.yaml",
				"manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
				"manifests/base/crds/kubeflow.org_tfjobs.yaml",
				"manifests/base/crds/kubeflow.org_xgboostjobs.yaml",
			},
			Copies: map[string]string{
				"files/role.yaml":     "manifests/base/rbac/role.yaml",
				"files/webhooks.yaml": "manifests/base/webhook/manifests.yaml",
			},
		},
		Deployments: []string{"training-operator"},
		Images: []Image{
			{Token: "training-operator", of: main, Package: "github.com/kubeflow/training-operator/cmd/training-operator.v1", Path: "/manager"},
			{Token: "pytorch-init", Title: "init container of PyTorchJobs", of: initial},
		},
		Component: Component{Module: "kubernetes"},
	},
	{
		Name: "kuberay-operator", Title: "KubeRay",
		Chart: Chart{
			Folder: "charts/kuberay-operator",
			CRDs: []string{ // RayCronJobs are behind a feature gate
				"config/crd/bases/ray.io_rayclusters.yaml",
				"config/crd/bases/ray.io_rayjobs.yaml",
				"config/crd/bases/ray.io_rayservices.yaml",
			},
			Copies: map[string]string{"files/role.yaml": "config/rbac/role.yaml"},
		},
		Deployments: []string{"kuberay-operator"},
		Images:      []Image{{Token: "kuberay-operator", of: main, Package: "github.com/ray-project/kuberay/ray-operator", Path: "/manager"}},
		Component:   Component{Module: "kubernetes"},
	},
	{
		Name: "jobset", Title: "JobSet", Optional: true,
		Chart: Chart{Upstream: "charts/jobset", Edits: []Edit{
			// Empty fields are owned fields: each upgrade would write over the certificate.
			{"templates/internalcert/secret.yaml", "\ndata:\n  ca.crt: \"\"\n  ca.key: \"\"\n  tls.crt: \"\"\n  tls.key: \"\"\n", "\n"},
			priority("templates/controller/deployment.yaml", ".Values.controller"),
		}},
		Deployments: []string{"jobset-controller", "jobset-controller-manager"},
		Images:      []Image{{Token: "jobset", of: main, Package: "sigs.k8s.io/jobset", Path: "/manager"}},
		Component:   Component{Module: "kueue"},
	},
	{
		Name: "leaderworkerset", Title: "LeaderWorkerSet", Optional: true,
		Chart:       Chart{Upstream: "charts/lws", Edits: []Edit{priority("templates/manager/deployment.yaml", ".Values")}},
		Deployments: []string{"lws-controller-manager"},
		Images:      []Image{{Token: "leaderworkerset", of: main, Package: "sigs.k8s.io/lws/cmd", Path: "/manager"}},
		Component:   Component{Module: "kueue"},
	},
	{
		Name: "appwrapper", Title: "AppWrapper controller", Own: true,
		Chart:       Chart{Folder: "charts/appwrapper"},
		Deployments: []string{"appwrapper-controller-manager"},
		Images:      []Image{{Token: "controller", of: main, Path: "/manager"}},
	},
}

// priority gives the pods of a Deployment the value priorityClassName of a section.
func priority(file, section string) Edit {
	at := "      {{- with " + section + ".nodeSelector }}\n"
	return Edit{file, at, "      {{- with " + section + ".priorityClassName }}\n      priorityClassName: {{ . }}\n      {{- end }}\n" + at}
}

// Of finds the part that a Deployment is of, by its name.
func Of(deployment string) (Part, bool) {
	for _, p := range All {
		for _, end := range p.Deployments {
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

// Operator has the version, the module and the images of the part.
func (p Part) Operator(versions setup.Versions) setup.Operator {
	if p.Own {
		return setup.Operator{Version: versions.Version, Module: versions.Module, Image: versions.ControllerImage()}
	}
	return versions.Platform[p.Name]
}

// Reference is where an image of the part is pulled from.
func (p Part) Reference(i Image, versions setup.Versions) string { return i.of(p.Operator(versions)) }

// References are those of all images of the part.
func (p Part) References(versions setup.Versions) []string {
	var all []string
	for _, i := range p.Images {
		all = append(all, p.Reference(i, versions))
	}
	return all
}

// Packages are the main packages of the part's programs.
func (p Part) Packages() []string {
	var all []string
	for _, i := range p.Images {
		if i.Package != "" {
			all = append(all, i.Package)
		}
	}
	return all
}

// Program is the file name that go build gives to the program of an image.
func (i Image) Program() string { return path.Base(i.Package) }

// References are the images of all parts.
func References(versions setup.Versions) []string {
	var all []string
	for _, p := range All {
		all = append(all, p.References(versions)...)
	}
	return all
}

// Tag is that of the image which this release has of the part.
func (p Part) Tag(versions setup.Versions) string { return Tag(p.Operator(versions).Image) }

// Tag of an image, or "" if it has none.
func Tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	at := strings.LastIndex(image, ":")
	if at <= strings.LastIndex(image, "/") {
		return ""
	}
	return image[at+1:]
}
