// SPDX-License-Identifier: Apache-2.0

// Package parts is the table of the platform's parts. Packaging, image builds, the installer and
// cluster checks all read it. It is only data.
package parts

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/setup"
)

// Part is one operator of the platform.
type Part struct {
	// Name is the name of its chart, of its section in the platform's values, and of its
	// entry in setup/versions.yaml.
	Name string
	// Title is its name in messages.
	Title string
	// Optional is set if the part is disabled by default.
	Optional bool
	// Essential is set if nothing starts without the part.
	Essential bool
	// Own is set for our own controllers, which are built from the checkout.
	Own   bool
	Chart Chart
	// Kinds are the kinds that it defines and that commands know.
	Kinds []Kind
	// Deployments are suffixes of the names of its Deployments, in any installation.
	Deployments []string
	Images      []Image
	// Component says how its programs are built for local clusters.
	Component Component
}

// Chart says where the chart of a part comes from: a folder of this repository, or a folder of
// the upstream module.
type Chart struct {
	Folder, Upstream string
	// CRDs are the files of the module, or of the checkout for our own controllers, that our
	// chart includes: the CRDs of the kinds that the operator watches, and no others.
	CRDs []string
	// Copies are other files of the module, by their paths in our chart.
	Copies map[string]string
	// Edits change templates and CRDs of an upstream chart.
	Edits []Edit
}

// Edit replaces a text that must occur exactly once in a file.
type Edit struct{ File, From, To string }

// Kind is a kind that a part defines and that commands know.
type Kind struct {
	// Version is the one that commands and controllers read.
	Group, Version, Name, Plural string
	// Framework is its name in Kueue's configuration, if Kueue queues it only when it is listed there.
	Framework string
	// Bare is set if Kueue queues it without an AppWrapper. Its pods then have PodLabel, with its name,
	// unless another kind makes them.
	Bare     bool
	PodLabel string
	// Probe are the metadata and the spec of an object with which the installer finds out whether the
	// kind's webhook answers. It is empty if there is no webhook.
	Probe string
	// Owns is set if a controller makes objects whose owner is one of the kind.
	Owns bool
}

// Definition returns the name of its CustomResourceDefinition.
func (k Kind) Definition() string { return k.Plural + "." + k.Group }

// APIVersion returns its group and version.
func (k Kind) APIVersion() string { return k.Group + "/" + k.Version }

// Image is an image that the pods of a part run.
type Image struct {
	// Token is its name in the values of charts, such as @kueue.repository@.
	Token string
	// Title says what it is; empty for the operator itself.
	Title string
	of    func(setup.Operator) string
	// Value is the field of the part's values that chooses it: a section with a repository and a tag,
	// or the whole reference.
	Value string
	// Package is the main package of its program, and Path the program's path in the image.
	// An image without a package is not built, but pulled as it is. Of our own parts it is a
	// folder of the checkout. Our controllers are programs of one image.
	Package, Path string
}

// Component says how all programs of a part are built together.
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

// OtherGangSchedulers are the Deployments of gang schedulers that are not ours.
var OtherGangSchedulers = []string{"volcano-scheduler", "yunikorn-scheduler", "kai-scheduler-default"}

// All is the table, in the order in which parts are shown.
var All = []Part{
	{
		Name: "kueue", Title: "Kueue", Essential: true,
		Chart: Chart{Upstream: "charts/kueue", Edits: []Edit{
			// Kubernetes 1.30 drops them, and counts each time that they are applied as a change of the CRD.
			{"templates/crd/kueue.x-k8s.io_workloads.yaml", selectable, `{{ if semverCompare ">=1.31.0-0" .Capabilities.KubeVersion.Version }}` + selectable + "{{ end }}"},
			kueueReads("templates/manager/manager-config.yaml", "$config := .Values.managerConfig.controllerManagerConfigYaml | fromYaml", "$config := %s"),
			kueueReads(kueueWebhooks, "$integrationsConfig := (fromYaml .Values.managerConfig.controllerManagerConfigYaml)", "$integrationsConfig := (%s)"),
			kueueReads(kueueWebhooks, "$managerConfig := (fromYaml .Values.managerConfig.controllerManagerConfigYaml)", "$managerConfig := (%s)"),
			{kueueWebhooks, "{{/* Code generated by yaml-processor. DO NOT EDIT. */}}", `{{- define "kueue.allWebhooks" }}`},
			{kueueWebhooks, lastWebhook, lastWebhook + "{{- end }}\n{{- include \"mlbatch.kueueWebhooks\" . }}\n"},
			memory("templates/manager/manager.yaml", "        name: manager\n", "controllerManager.manager.resources", 8),
			{visibilityAPI + "1.yaml", visibilityBegin, ifVisible + visibilityBegin},
			{visibilityAPI + "1.yaml", visibilityEnd, visibilityEnd + "{{- end }}\n"},
			{visibilityAPI + "2.yaml", visibilityBegin, ifVisible + visibilityBegin},
			{visibilityAPI + "2.yaml", visibilityEnd, visibilityEnd + "{{- end }}\n"},
			reference("templates/manager/manager.yaml", ".Values.controllerManager.manager.image", `"`),
			reference("templates/kueueviz/backend-deployment.yaml", ".Values.kueueViz.backend.image", `'`),
			reference("templates/kueueviz/frontend-deployment.yaml", ".Values.kueueViz.frontend.image", `'`),
			secrets("templates/manager/manager.yaml", ".Values.controllerManager.imagePullSecrets  }}"),
			secrets("templates/kueueviz/backend-deployment.yaml", ".Values.kueueViz.backend.imagePullSecrets  }}"),
			secrets("templates/kueueviz/frontend-deployment.yaml", ".Values.kueueViz.frontend.imagePullSecrets  }}"),
		}},
		Kinds: []Kind{
			{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "ClusterQueue", Plural: "clusterqueues", Probe: "metadata: {name: probe}"},
			{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "Cohort", Plural: "cohorts"},
			{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "LocalQueue", Plural: "localqueues"},
			{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "ResourceFlavor", Plural: "resourceflavors"},
			{Group: "kueue.x-k8s.io", Version: "v1beta2", Name: "Workload", Plural: "workloads"},
		},
		Deployments: []string{"kueue-controller-manager"},
		Images:      []Image{{Token: "kueue", of: main, Value: "controllerManager.manager.image", Package: "sigs.k8s.io/kueue/cmd/kueue", Path: "/manager"}},
		Component:   Component{Module: "kueue"},
	},
	{
		Name: "coscheduler", Title: "Coscheduler",
		Chart: Chart{Folder: "charts/coscheduler", CRDs: []string{
			"config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
			"config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml", // the PodGroup controller exits without this CRD
		}},
		Kinds:       []Kind{{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Name: "PodGroup", Plural: "podgroups"}},
		Deployments: []string{"scheduler-plugins-scheduler", "scheduler-plugins-controller"},
		Images: []Image{
			{Token: "coscheduler", of: main, Value: "scheduler.image", Package: "sigs.k8s.io/scheduler-plugins/cmd/scheduler", Path: "/bin/kube-scheduler"},
			{
				Token: "coscheduler-controller", Title: "its PodGroup controller", of: controller, Value: "controller.image",
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
		Kinds: []Kind{{
			Group: "kubeflow.org", Version: "v1", Name: "PyTorchJob", Plural: "pytorchjobs",
			Framework: "kubeflow.org/pytorchjob", Bare: true, PodLabel: "training.kubeflow.org/job-name",
			Probe: "metadata: {name: probe, namespace: default}, spec: {pytorchReplicaSpecs: {}}", Owns: true,
		}},
		Deployments: []string{"training-operator"},
		Images: []Image{
			{Token: "training-operator", of: main, Value: "image", Package: "github.com/kubeflow/training-operator/cmd/training-operator.v1", Path: "/manager"},
			{Token: "pytorch-init", Title: "init container of PyTorchJobs", of: initial, Value: "pytorch.initContainer.image"},
		},
		Component: Component{Module: "kueue"},
	},
	{
		Name: "kuberay-operator", Title: "KubeRay",
		Chart: Chart{
			Folder: "charts/kuberay-operator",
			CRDs: []string{ // not RayCronJob, which is behind a feature gate
				"config/crd/bases/ray.io_rayclusters.yaml",
				"config/crd/bases/ray.io_rayjobs.yaml",
				"config/crd/bases/ray.io_rayservices.yaml",
			},
			Copies: map[string]string{"files/role.yaml": "config/rbac/role.yaml"},
		},
		Kinds: []Kind{
			{
				Group: "ray.io", Version: "v1", Name: "RayCluster", Plural: "rayclusters",
				Framework: "ray.io/raycluster", Bare: true, PodLabel: "ray.io/cluster", Owns: true,
			},
			{Group: "ray.io", Version: "v1", Name: "RayJob", Plural: "rayjobs", Framework: "ray.io/rayjob", Bare: true},
		},
		Deployments: []string{"kuberay-operator"},
		Images:      []Image{{Token: "kuberay-operator", of: main, Value: "image", Package: "github.com/ray-project/kuberay/ray-operator", Path: "/manager"}},
		Component:   Component{Module: "kubernetes"},
	},
	{
		Name: "jobset", Title: "JobSet", Optional: true,
		Chart: Chart{Upstream: "charts/jobset", Edits: []Edit{
			// Helm owns fields that it sets, even empty ones: each upgrade would overwrite the certificate.
			{"templates/internalcert/secret.yaml", "\ndata:\n  ca.crt: \"\"\n  ca.key: \"\"\n  tls.crt: \"\"\n  tls.key: \"\"\n", "\n"},
			// namespace is a reserved word of CEL. Before 1.32, Kubernetes knows the field only by its escaped name.
			{"files/crds/jobset.x-k8s.io_jobsets.yaml", "!has(t.metadata.namespace) || size(t.metadata.namespace) == 0", "!has(t.metadata.__namespace__) || size(t.metadata.__namespace__) == 0"},
			podFields("templates/controller/deployment.yaml", ".Values.controller"),
			{"templates/controller/deployment.yaml", jobSetEnv, `        {{- $memory := include "platform.memoryLimit" (list .Values.controller.resources .Values.controller.env) }}
        {{- if or $memory .Values.controller.env }}
        env:
        {{- with $memory }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .Values.controller.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- end }}
`},
			reference("templates/controller/deployment.yaml", ".Values.image", `"`),
			secrets("templates/controller/deployment.yaml", ".Values.image.pullSecrets }}"),
		}},
		Kinds: []Kind{{
			Group: "jobset.x-k8s.io", Version: "v1alpha2", Name: "JobSet", Plural: "jobsets",
			Framework: "jobset.x-k8s.io/jobset", Bare: true, PodLabel: "jobset.sigs.k8s.io/jobset-name",
			Probe: "metadata: {name: probe, namespace: default}, spec: {}", Owns: true,
		}},
		Deployments: []string{"jobset-controller", "jobset-controller-manager"},
		Images:      []Image{{Token: "jobset", of: main, Value: "image", Package: "sigs.k8s.io/jobset", Path: "/manager"}},
		Component:   Component{Module: "kueue"},
	},
	{
		Name: "leaderworkerset", Title: "LeaderWorkerSet", Optional: true,
		Chart: Chart{Upstream: "charts/lws", Edits: []Edit{
			podFields("templates/manager/deployment.yaml", ".Values"),
			memory("templates/manager/deployment.yaml", "          name: manager\n", "resources", 10),
			reference("templates/manager/deployment.yaml", ".Values.image.manager", `"`),
			secrets("templates/manager/deployment.yaml", ".Values.imagePullSecrets }}"),
		}},
		Kinds: []Kind{{
			Group: "leaderworkerset.x-k8s.io", Version: "v1", Name: "LeaderWorkerSet", Plural: "leaderworkersets",
			Bare: true, PodLabel: "leaderworkerset.sigs.k8s.io/name",
			Probe: "metadata: {name: probe, namespace: default}, spec: {}", Owns: true,
		}},
		Deployments: []string{"lws-controller-manager"},
		Images:      []Image{{Token: "leaderworkerset", of: main, Value: "image.manager", Package: "sigs.k8s.io/lws/cmd", Path: "/manager"}},
		Component:   Component{Module: "kueue"},
	},
	{
		Name: "appwrapper", Title: "AppWrapper controller", Essential: true, Own: true,
		Chart: Chart{Folder: "charts/appwrapper"},
		Kinds: []Kind{{
			Group: "workload.codeflare.dev", Version: "v1beta2", Name: "AppWrapper", Plural: "appwrappers",
			Framework: "workload.codeflare.dev/appwrapper",
			Probe:     "metadata: {name: probe, namespace: default}, spec: {components: []}", Owns: true,
		}},
		Deployments: []string{"appwrapper-controller-manager"},
		Images:      []Image{{Token: "controller", of: main, Value: "image", Package: "controller", Path: "/manager"}},
	},
	{
		Name: "codeflare", Title: "controller of Runs", Optional: true, Own: true,
		Chart: Chart{Folder: "charts/codeflare", CRDs: []string{
			"controller/runschema/crds/codeflare.dev_applications.yaml",
			"controller/runschema/crds/codeflare.dev_datasets.yaml",
			"controller/runschema/crds/codeflare.dev_runs.yaml",
			"controller/runschema/crds/codeflare.dev_runsizeconfigurations.yaml",
		}},
		Kinds: []Kind{{
			Group: "codeflare.dev", Version: "v1alpha1", Name: "Run", Plural: "runs",
			Probe: "metadata: {name: probe, namespace: default}, spec: {application: {name: probe}}",
		}},
		Deployments: []string{"codeflare-controller-manager"},
		Images: []Image{
			{Token: "controller", of: main, Value: "image", Package: "controller/runs", Path: "/runs"},
			{Token: "agent", Title: "agent in the pods of Runs", of: initial, Value: "agent.image", Package: "controller/agent", Path: "/agent"},
		},
	},
}

// podFields returns an edit that sets the PriorityClass and the network of a Deployment's pods from a
// section of the values.
func podFields(file, section string) Edit {
	at := "      {{- with " + section + ".nodeSelector }}\n"
	priority := "      {{- with " + section + ".priorityClassName }}\n      priorityClassName: {{ . }}\n      {{- end }}\n"
	network := "      {{- if " + section + ".hostNetwork }}\n      hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet\n      {{- end }}\n"
	return Edit{file, at, priority + network + at}
}

// memory returns an edit that sets GOMEMLIMIT behind a line of a container, whose resources are a value.
func memory(file, at, resources string, indent int) Edit {
	space := strings.Repeat(" ", indent)
	env := space + `{{- with include "platform.memoryLimit" (list .Values.` + resources + " list) }}\n" +
		space + "env:\n" + space + "{{- . | nindent " + strconv.Itoa(indent) + " }}\n" + space + "{{- end }}\n"
	return Edit{file, at, at + env}
}

// jobSetEnv are the environment variables in JobSet's chart.
const jobSetEnv = "        {{- with .Values.controller.env }}\n        env:\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"

// reference returns an edit that takes an image of a section of the values from
// global.imageRegistry, if that is set.
func reference(file, section, quote string) Edit {
	from := "image: " + quote + "{{ " + section + ".repository }}:{{ " + section + ".tag | default .Chart.AppVersion }}" + quote
	to := `image: {{ include "platform.image" (list . ` + section + `.repository (` + section + `.tag | default .Chart.AppVersion)) | quote }}`
	return Edit{file, from, to}
}

// selectable are the fields by which Workloads can be selected.
const selectable = `"selectableFields":[{"jsonPath":".status.admission.clusterQueue"}],`

// kueueWebhooks is the template of Kueue's webhooks, of which charts/mlbatch renders those that do something.
const kueueWebhooks = "templates/webhook/manifests.yaml"

// lastWebhook is how that template ends.
const lastWebhook = "          - CREATE\n          - UPDATE\n        resources:\n          - xgboostjobs\n    sideEffects: None\n"

// Kueue's chart registers its visibility API also if the feature is off. Then nothing would answer.
const (
	visibilityAPI   = "templates/visibility/apiservice_v1beta"
	visibilityBegin = "apiVersion: apiregistration.k8s.io/v1\n"
	visibilityEnd   = "  versionPriority: 100\n"
	ifVisible       = `{{- if include "mlbatch.kueueIsVisible" . }}` + "\n"
)

// kueueReads returns an edit after which Kueue's chart takes its configuration from structured values, too.
func kueueReads(file, from, to string) Edit {
	const read = `include "platform.kueueConfiguration" (dict "configuration" .Values.managerConfig.configuration ` +
		`"controllerManagerConfigYaml" .Values.managerConfig.controllerManagerConfigYaml) | fromYaml`
	return Edit{file, from, strings.Replace(to, "%s", read, 1)}
}

// secrets returns an edit that adds global.imagePullSecrets to those of a value. The value comes with
// the spaces and braces that follow it in the file.
func secrets(file, value string) Edit {
	name, _, _ := strings.Cut(value, " ")
	return Edit{file, "{{- with " + value, `{{- with include "platform.pullSecrets" (list . ` + name + `) | fromYamlArray }}`}
}

// Of returns the part to which a Deployment belongs, by the Deployment's name.
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

// Named returns the part with a chart of this name.
func Named(name string) (Part, bool) {
	for _, p := range All {
		if p.Name == name {
			return p, true
		}
	}
	return Part{}, false
}

// Kinds returns the kinds of all parts.
func Kinds() []Kind {
	var all []Kind
	for _, p := range All {
		all = append(all, p.Kinds...)
	}
	return all
}

// Enabled reports whether the part is enabled in values that include the chart's defaults.
func (p Part) Enabled(values map[string]any) bool {
	section, _ := values[p.Name].(map[string]any)
	on, _ := section["enabled"].(bool)
	return on
}

// Operator returns the version, the module and the images of the part.
func (p Part) Operator(versions setup.Versions) setup.Operator {
	if p.Own {
		return setup.Operator{Version: versions.Version, Module: versions.Module, Image: versions.ControllerImage(), InitImage: versions.AgentImage()}
	}
	return versions.Platform[p.Name]
}

// Reference returns the reference from which an image of the part is pulled.
func (p Part) Reference(i Image, versions setup.Versions) string { return i.of(p.Operator(versions)) }

// References returns the references of all images of the part.
func (p Part) References(versions setup.Versions) []string {
	var all []string
	for _, i := range p.Images {
		all = append(all, p.Reference(i, versions))
	}
	return all
}

// Packages returns the main packages of the part's programs.
func (p Part) Packages() []string {
	var all []string
	for _, i := range p.Images {
		if i.Package != "" {
			all = append(all, i.Package)
		}
	}
	return all
}

// Program returns the file name that go build gives to the program of an image.
func (i Image) Program() string { return path.Base(i.Package) }

// References returns the image references of some parts, each once: our controllers are in one image.
func References(versions setup.Versions, of ...Part) []string {
	var all []string
	for _, p := range of {
		for _, reference := range p.References(versions) {
			if !slices.Contains(all, reference) {
				all = append(all, reference)
			}
		}
	}
	return all
}

// TagsFor returns the tags of the part's images for a minor version of Kubernetes, such as 1.33, or
// for every version if it is empty.
func (p Part) TagsFor(kubernetes string, versions setup.Versions) []string {
	others := p.Operator(versions).OtherKubernetes
	if tag := others[kubernetes]; tag != "" {
		return []string{tag}
	}
	all := []string{p.Tag(versions)}
	if kubernetes == "" {
		all = slices.Compact(slices.Sorted(maps.Values(others)))
		all = append([]string{p.Tag(versions)}, all...)
	}
	return all
}

// Tag returns the tag of the part's image in this release.
func (p Part) Tag(versions setup.Versions) string { return Tag(p.Operator(versions).Image) }

// Tag returns the tag of an image, or "" if it has none.
func Tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	at := strings.LastIndex(image, ":")
	if at <= strings.LastIndex(image, "/") {
		return ""
	}
	return image[at+1:]
}
