// SPDX-License-Identifier: Apache-2.0

// Package argocd_test lets Argo CD's own packages read the settings in samples/gitops/argocd-settings. It starts
// nothing: 'make argocd' does.
package argocd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/v3/applicationset/utils"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const settings = "../../../../samples/gitops/argocd-settings"

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(settings, file))
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An object of each state, and what Argo CD's pages show of it.
func TestHealth(t *testing.T) {
	var config struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Data             map[string]string
	}
	read(t, "health.yaml", &config)
	const (
		wrapper = "workload.codeflare.dev/v1beta2 AppWrapper"
		run     = "codeflare.dev/v1alpha1 Run"
		queue   = "kueue.x-k8s.io/v1beta2 ClusterQueue"
	)
	for name, row := range map[string]struct{ kind, status, health, message string }{
		"a new AppWrapper":             {wrapper, `{}`, "Progressing", "waits for the AppWrapper controller"},
		"one whose phase is empty":     {wrapper, `{phase: ""}`, "Progressing", "waits for the AppWrapper controller"},
		"one that waits":               {wrapper, `{phase: Suspended}`, "Suspended", "waits for quota"},
		"one that starts":              {wrapper, `{phase: Resuming, conditions: [{type: PodsReady, status: "False"}]}`, "Progressing", "Resuming"},
		"one whose pods are not ready": {wrapper, `{phase: Running, conditions: [{type: PodsReady, status: "False"}]}`, "Progressing", "Running"},
		"one that runs":                {wrapper, `{phase: Running, conditions: [{type: PodsReady, status: "True"}, {type: Unhealthy, status: "False", reason: FoundNoFailedPods}]}`, "Healthy", "Running"},
		"one with failed pods":         {wrapper, `{phase: Running, conditions: [{type: PodsReady, status: "True"}, {type: Unhealthy, status: "True", reason: FoundFailedPods}]}`, "Degraded", "Running: FoundFailedPods: "},
		"one that is tried again":      {wrapper, `{phase: Resetting, conditions: [{type: Unhealthy, status: "True", reason: FailedComponent, message: one}]}`, "Progressing", "Resetting: FailedComponent: one"},
		"one that is preempted":        {wrapper, `{phase: Suspending}`, "Progressing", "Suspending"},
		"one that has succeeded":       {wrapper, `{phase: Succeeded, conditions: [{type: PodsReady, status: "False"}]}`, "Healthy", "Succeeded"},
		"one that has failed":          {wrapper, `{phase: Failed, conditions: [{type: Unhealthy, status: "True", reason: CreateFailed, message: no such kind}]}`, "Degraded", "Failed: CreateFailed: no such kind"},
		"a new Run":                    {run, `{}`, "Progressing", "waits for the controller of Runs"},
		"a Run that is planned":        {run, `{phase: Pending}`, "Progressing", "Pending"},
		"a Run that waits":             {run, `{phase: Queued, message: the queue is full}`, "Suspended", "the queue is full"},
		"a Run that starts":            {run, `{phase: Starting}`, "Progressing", "Starting"},
		"a Run that runs":              {run, `{phase: Running}`, "Healthy", "Running"},
		"a Run that is tried again":    {run, `{phase: Retrying}`, "Progressing", "Retrying"},
		"a Run that is preempted":      {run, `{phase: Preempted}`, "Suspended", "Preempted"},
		"a Run that has succeeded":     {run, `{phase: Succeeded}`, "Healthy", "Succeeded"},
		"a Run that has failed":        {run, `{phase: Failed, message: exit code 1}`, "Degraded", "exit code 1"},
		"a Run that was cancelled":     {run, `{phase: Cancelled}`, "Suspended", "Cancelled"},
		"a new ClusterQueue":           {queue, `{}`, "Progressing", "waits for Kueue"},
		"a ClusterQueue that admits":   {queue, `{conditions: [{type: Active, status: "True", reason: Ready, message: Can admit new workloads}]}`, "Healthy", "Can admit new workloads"},
		"a stopped ClusterQueue":       {queue, `{conditions: [{type: Active, status: "False", reason: Stopped, message: is stopped}]}`, "Suspended", "is stopped"},
		"one without its flavor":       {queue, `{conditions: [{type: Active, status: "False", reason: FlavorNotFound, message: references missing flavors}]}`, "Degraded", "references missing flavors"},
		"one that is deleted":          {queue, `{conditions: [{type: Active, status: "False", reason: Terminating}]}`, "Progressing", "Terminating"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			var status map[string]any
			if err := yaml.Unmarshal([]byte(row.status), &status); err != nil {
				t.Fatal(err)
			}
			if len(status) > 0 {
				object.Object["status"] = status
			}
			apiVersion, kind, _ := strings.Cut(row.kind, " ")
			gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
			object.SetGroupVersionKind(gvk)
			vm := lua.VM{ResourceOverrides: map[string]v1alpha1.ResourceOverride{
				gvk.Group + "/" + gvk.Kind: {HealthLua: config.Data["resource.customizations.health."+gvk.Group+"_"+gvk.Kind]},
			}}
			script, _, err := vm.GetHealthScript(object)
			if err != nil || script == "" {
				t.Fatalf("there is no check: %v", err)
			}
			health, err := vm.ExecuteHealthLua(object, script)
			if err != nil {
				t.Fatal(err)
			}
			if string(health.Status) != row.health || health.Message != row.message {
				t.Errorf("it is %s: %q, want %s: %q", health.Status, health.Message, row.health, row.message)
			}
		})
	}
}

// Argo CD makes two Applications for each cluster, and the project allows them.
func TestClusters(t *testing.T) {
	var set v1alpha1.ApplicationSet
	read(t, "clusters.yaml", &set)
	var project v1alpha1.AppProject
	read(t, "project.yaml", &project)
	var names []string
	for _, element := range set.Spec.Generators[0].List.Elements {
		var params map[string]any
		if err := yaml.Unmarshal(element.Raw, &params); err != nil {
			t.Fatal(err)
		}
		template := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: set.Spec.Template.Name}, Spec: set.Spec.Template.Spec}
		application, err := (&utils.Render{}).RenderTemplateParams(template, set.Spec.SyncPolicy, params, set.Spec.GoTemplate, set.Spec.GoTemplateOptions)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, application.Name)
		chart := application.Spec.Sources[0]
		if want := "$values/clusters/" + params["cluster"].(string) + "/" + params["release"].(string) + ".yaml"; chart.Helm.ValueFiles[0] != want || chart.Helm.ReleaseName != params["release"] || chart.Chart != params["release"] {
			t.Errorf("%s is the release %s of %s, with %v", application.Name, chart.Helm.ReleaseName, chart.Chart, chart.Helm.ValueFiles)
		}
		if application.Spec.Project != project.Name {
			t.Errorf("%s is in project %s", application.Name, application.Spec.Project)
		}
		for _, source := range application.Spec.Sources {
			if !project.IsSourcePermitted(source) {
				t.Errorf("the project does not allow %s", source.RepoURL)
			}
		}
		allowed, err := project.IsDestinationPermitted(&v1alpha1.Cluster{Server: application.Spec.Destination.Server}, application.Spec.Destination.Namespace, nil)
		if err != nil || !allowed {
			t.Errorf("the project does not allow %+v: %v", application.Spec.Destination, err)
		}
	}
	if want := []string{"production-mlbatch", "production-teams", "research-mlbatch", "research-teams"}; !slices.Equal(names, want) {
		t.Errorf("the Applications are %q, want %q", names, want)
	}
	if project.IsSourcePermitted(v1alpha1.ApplicationSource{RepoURL: "https://elsewhere.example.com/charts"}) {
		t.Error("the project allows charts of anybody")
	}
	if project.IsGroupKindPermitted(schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "Other"}, false) {
		t.Error("the project allows what no chart has")
	}
}
