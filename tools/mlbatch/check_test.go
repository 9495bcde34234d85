// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
)

const (
	deployments = "/apis/apps/v1/deployments"
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	settingsOf  = "/api/v1/namespaces/mlbatch-system/configmaps"
	deployed    = `{"metadata":{"name":%q,"namespace":"mlbatch-system"},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"m","image":%q,"args":[%q]}],
		"volumes":[{"name":"other"},{"name":"config","configMap":{"name":%q}}]}}},"status":{"availableReplicas":1}}`
)

// soundWorld is a cluster with the platform, in which only a queue is not used.
func soundWorld(t *testing.T) map[string]string {
	t.Helper()
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	kueueConfig, _ := json.Marshal("manageJobsWithoutQueueName: true\nintegrations: {frameworks: [workload.codeflare.dev/appwrapper]}")
	return map[string]string{
		deployments: list("apps/v1", "Deployment",
			fmt.Sprintf(deployed, "kueue-controller-manager", versions.Platform["kueue"].Image, "--feature-gates=DisableWaitForPodsReady=true,Other=false", "kueue-config"),
			fmt.Sprintf(deployed, "appwrapper-controller-manager", versions.ControllerImage(), "", "ours")),
		definitions: list("apiextensions.k8s.io/v1", "CustomResourceDefinition",
			`{"metadata":{"name":"clusterqueues.kueue.x-k8s.io"},"spec":{"versions":[{"name":"v1beta1","served":false},{"name":"v1beta2","served":true}]}}`),
		"/api/v1/nodes":                                    list("v1", "Node", `{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2"},"conditions":[{"type":"Ready","status":"True"}]}}`),
		"/api/v1/pods":                                     list("v1", "Pod"),
		"/api/v1/namespaces":                               list("v1", "Namespace", `{"metadata":{"name":"blue","labels":{"mlbatch-team-namespace":"true"},"annotations":{"mlbatch-tolerations":""}}}`),
		queues + "/clusterqueues":                          list("kueue.x-k8s.io/v1beta2", "ClusterQueue", `{"metadata":{"name":"blue"}}`),
		queues + "/cohorts":                                list("kueue.x-k8s.io/v1beta2", "Cohort"),
		queues + "/resourceflavors":                        list("kueue.x-k8s.io/v1beta2", "ResourceFlavor"),
		queues + "/localqueues":                            list("kueue.x-k8s.io/v1beta2", "LocalQueue"),
		queues + "/workloads":                              list("kueue.x-k8s.io/v1beta2", "Workload"),
		"/apis/workload.codeflare.dev/v1beta2/appwrappers": list("workload.codeflare.dev/v1beta2", "AppWrapper"),
		settingsOf:                                         list("v1", "ConfigMap", `{"metadata":{"name":"any"},"data":{"controller_manager_config.yaml":`+string(kueueConfig)+`,"config.yaml":"appwrapper: {}"}}`),
	}
}

func TestCheckReadsOneListAKind(t *testing.T) {
	out, progress, requests, err := ask(t, soundWorld(t), "check -o wide")
	if err != nil || progress != "" || strings.Count(out, "\n") != 2 || !strings.Contains(out, "\nnote      ClusterQueueUnused  ClusterQueue blue  LocalQueues: 0 of 0  ") {
		t.Errorf("got %s, %q, %v", out, progress, err)
	}
	want := []string{
		"GET " + deployments + "?limit=500", "GET " + definitions + "?limit=500", "GET /api/v1/nodes?limit=500",
		"GET /api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&limit=500", "GET /api/v1/namespaces?limit=500",
		"GET " + queues + "/clusterqueues?limit=500", "GET " + queues + "/cohorts?limit=500", "GET " + queues + "/resourceflavors?limit=500",
		"GET " + queues + "/localqueues?limit=500", "GET " + queues + "/workloads?limit=500", "GET /apis/workload.codeflare.dev/v1beta2/appwrappers?limit=500",
		"GET " + settingsOf + "?fieldSelector=metadata.name%3Dkueue-config&limit=500", "GET " + settingsOf + "?fieldSelector=metadata.name%3Dours&limit=500",
		"GET " + settingsOf + "?fieldSelector=metadata.name%3Dmlbatch-slack-queues&limit=500",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheckReadsAllPages(t *testing.T) {
	world := soundWorld(t)
	for _, path := range []string{definitions, queues + "/clusterqueues"} {
		world[path+"?2"] = world[path]
		world[path] = strings.Replace(world[path], `"metadata":{}`, `"metadata":{"continue":"2"}`, 1)
	}
	out, _, requests, err := ask(t, world, "check")
	if err != nil || len(requests) != 16 || strings.Count(out, "ClusterQueueUnused  ClusterQueue blue") != 2 {
		t.Errorf("got %s, %q, %v", out, requests, err)
	}
}

// The exit status depends on how bad the worst finding is.
func TestCheckFailsOnWhatIsBad(t *testing.T) {
	for line, want := range map[string]error{"check": nil, "check --fail-on=warning": nil, "check --fail-on=note": somethingFound} {
		if _, _, _, err := ask(t, soundWorld(t), line); !errors.Is(err, want) {
			t.Errorf("mlbatch %s ends with %v, want %v", line, err, want)
		}
	}
	broken := soundWorld(t)
	broken[queues+"/localqueues"] = list("kueue.x-k8s.io/v1beta2", "LocalQueue", `{"metadata":{"name":"a","namespace":"blue"},"spec":{"clusterQueue":"bleu"}}`)
	if out, _, _, err := ask(t, broken, "check"); !errors.Is(err, somethingFound) || !strings.Contains(out, "\nerror     ClusterQueueMissing ") {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestCheckForPrograms(t *testing.T) {
	out, _, _, err := ask(t, soundWorld(t), "check -o json")
	var report checkup.Report
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || report.Installed == nil || !*report.Installed || report.Findings[0].Evidence[0].Value != "0 of 0" {
		t.Errorf("got %s, %v", out, err)
	}
	if out, _, _, err = ask(t, soundWorld(t), "check -o yaml"); err != nil || !strings.Contains(out, "\nitems:\n- code: ClusterQueueUnused\n") {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestCheckFindsNothing(t *testing.T) {
	world := soundWorld(t)
	world[queues+"/clusterqueues"] = list("kueue.x-k8s.io/v1beta2", "ClusterQueue")
	if out, progress, _, err := ask(t, world, "check"); err != nil || out != "" || progress != "nothing was found\n" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

// The ConfigMap is that of the chart teams.
func TestCheckKnowsTheSlackQueuesOfTheTeams(t *testing.T) {
	world := soundWorld(t)
	world[settingsOf] = strings.Replace(world[settingsOf], `"items":[`, `"items":[{"metadata":{"name":"mlbatch-slack-queues"},"data":{"unnamed":"{}"}},`, 1)
	out, _, _, err := ask(t, world, "check")
	if !strings.Contains(out, "SlackQueueUnkept") || !strings.Contains(out, "ClusterQueue unnamed") {
		t.Errorf("got %s, %v", out, err)
	}
}

// Which queues are slack queues, which no LocalQueue uses, is in the settings.
const nothing = "nothing was found in what could be read\n"

// Who may read nothing is told so in a sentence a kind, and nothing else.
func TestCheckAsAMember(t *testing.T) {
	out, progress, requests, err := ask(t, soundWorld(t), "check --fail-on=note", "/")
	if err != nil || out != "" || len(requests) != 11 || strings.Count(progress, "note: you may not list ") != 11 || !strings.HasSuffix(progress, "\n"+nothing) {
		t.Errorf("got %q, %s%q, %v", out, progress, requests, err)
	}
	out, progress, _, err = ask(t, soundWorld(t), "check", settingsOf)
	want := "note: you may not list configmaps: ask an administrator for a role with this right\n" + nothing
	if err != nil || out != "" || progress != want {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

// What cannot be understood is not guessed.
func TestCheckWithSettingsThatCannotBeRead(t *testing.T) {
	world := soundWorld(t)
	world[settingsOf] = list("v1", "ConfigMap", `{"metadata":{"name":"any"},"data":{"controller_manager_config.yaml":"a: {","config.yaml":"appwraper: {}"}}`)
	want := "note: cannot read controller_manager_config.yaml in a ConfigMap of the Deployment mlbatch-system/kueue-controller-manager: look at its volumes and at the file\n" + nothing
	if _, progress, _, err := ask(t, world, "check"); err != nil || progress != want {
		t.Errorf("got %q, %v", progress, err)
	}
}

func TestCheckKnowsWhatKueueIsTold(t *testing.T) {
	world := soundWorld(t)
	world[settingsOf] = strings.Replace(world[settingsOf], `manageJobsWithoutQueueName: true`, `waitForPodsReady: {timeout: 5m}`, 1)
	world[deployments] = strings.Replace(world[deployments], "DisableWaitForPodsReady=true", "DisableWaitForPodsReady=false", 1)
	out, _, _, err := ask(t, world, "check")
	if !errors.Is(err, somethingFound) || !strings.Contains(out, "waitForPodsReady: true; DisableWaitForPodsReady: false") || !strings.Contains(out, "WorkWithoutQueueRuns") {
		t.Errorf("got %s, %v", out, err)
	}
}

// Before an installation, without charts: the command says what it cannot do.
func TestCheckOfAClusterWithoutThePlatform(t *testing.T) {
	bare := map[string]string{}
	for path, answer := range soundWorld(t) {
		if !strings.Contains(path, "kueue") && !strings.Contains(path, "codeflare") {
			bare[path] = answer
		}
	}
	bare[deployments] = list("apps/v1", "Deployment")
	out, progress, _, err := ask(t, bare, "check --charts=/no/such/folder --fail-on=warning")
	if !errors.Is(err, somethingFound) || !strings.Contains(out, "\nwarning   PlatformMissing  Cluster  ") || strings.Count(out, "warning ") != 1 {
		t.Errorf("got %s, %v", out, err)
	}
	want := "the cluster does not have the platform: this is what 'mlbatch install' looks at, too\nnote: cannot see what 'mlbatch install' would say: cannot find the packaged chart mlbatch in /no/such/folder: "
	if !strings.HasPrefix(progress, want) {
		t.Errorf("got %q", progress)
	}
}
