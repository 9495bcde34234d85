// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/wording"
)

const (
	storedRun = `{"apiVersion":"codeflare.dev/v1alpha1","kind":"Run","metadata":{"name":"a","namespace":"blue","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"application":{"name":"survey"}},"status":{"phase":"Running"}}`
	storedPod = `{"metadata":{"name":"p","namespace":"blue","labels":{"codeflare.dev/role":"master"}},"spec":{"containers":[{"name":"pytorch"}]},"status":{"phase":"Running"}}`
	group     = "/apis/codeflare.dev/v1alpha1"
)

// answers are those of an API server, by method and path. Lists of namespaces have one item.
var answers = map[string]string{
	"GET /api":    `{"kind":"APIVersions","versions":["v1"]}`,
	"GET /api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`,
	"GET /apis":   `{"kind":"APIGroupList","groups":[{"name":"codeflare.dev","versions":[{"groupVersion":"codeflare.dev/v1alpha1","version":"v1alpha1"}]}]}`,
	"GET " + group: `{"kind":"APIResourceList","groupVersion":"codeflare.dev/v1alpha1","resources":[{"name":"runs","kind":"Run","namespaced":true},
		{"name":"applications","kind":"Application","namespaced":true},{"name":"datasets","kind":"DataSet","namespaced":true},
		{"name":"runsizeconfigurations","kind":"RunSizeConfiguration"}]}`,
	"GET " + group + "/runs":                                  `{"kind":"RunList","apiVersion":"codeflare.dev/v1alpha1","items":[` + storedRun + `]}`,
	"GET " + group + "/namespaces/blue/runs":                  `{"kind":"RunList","apiVersion":"codeflare.dev/v1alpha1","items":[` + storedRun + `]}`,
	"GET " + group + "/namespaces/red/runs":                   `{"kind":"RunList","apiVersion":"codeflare.dev/v1alpha1","items":[]}`,
	"GET " + group + "/namespaces/blue/runs/a":                storedRun,
	"PATCH " + group + "/namespaces/blue/runs/a":              storedRun,
	"POST " + group + "/namespaces/blue/runs":                 storedRun,
	"GET " + group + "/runsizeconfigurations":                 `{"kind":"RunSizeConfigurationList","apiVersion":"codeflare.dev/v1alpha1","items":[]}`,
	"GET " + group + "/namespaces/blue/datasets":              `{"kind":"DataSetList","apiVersion":"codeflare.dev/v1alpha1","items":[]}`,
	"PATCH " + group + "/namespaces/blue/applications/digits": `{"kind":"Application","apiVersion":"codeflare.dev/v1alpha1","metadata":{"name":"digits","namespace":"blue"}}`,
	"PATCH " + group + "/namespaces/blue/datasets/pictures":   `{"kind":"DataSet","apiVersion":"codeflare.dev/v1alpha1","metadata":{"name":"pictures","namespace":"blue"}}`,
	"GET /api/v1/namespaces/blue/pods":                        `{"kind":"PodList","apiVersion":"v1","items":[` + storedPod + `]}`,
	"GET /api/v1/namespaces/blue/pods/p/log":                  "epoch 1\n",
}

// apiServer returns a kubeconfig of a server, and what it was asked to change.
func apiServer(t *testing.T) (kubeconfig string, changes func() []string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.Method+" "+r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet || strings.HasSuffix(r.URL.Path, "/log") {
			body, _ := io.ReadAll(r.Body)
			asked = append(asked, fmt.Sprintf("%s %s %s", r.Method, r.URL, body))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, namespace: blue}}], clusters: [{name: c, cluster: {server: "` + server.URL + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, func() []string { return asked }
}

func TestTheCommandsOfRunsTalkToTheCluster(t *testing.T) {
	old := func(verb string) string {
		return "note: write 'mlbatch " + verb + " run/a': 'mlbatch run " + verb + "' is its old spelling\n"
	}
	for line, row := range map[string]struct{ out, progress, asked string }{
		"run status a":                 {out: "Run a in namespace blue is Running.\n", progress: old("status")},
		"run status a -o json":         {out: `"kind": "WorkStatus"`, progress: old("status")},
		"run logs a":                   {out: "epoch 1\n", progress: old("logs"), asked: "GET /api/v1/namespaces/blue/pods/p/log?container=pytorch "},
		"run logs a --all --follow":    {out: "[0] epoch 1\n", progress: old("logs"), asked: "GET /api/v1/namespaces/blue/pods/p/log?container=pytorch&follow=true "},
		"run logs a --worker=0":        {out: "epoch 1\n", progress: old("logs"), asked: "GET /api/v1/namespaces/blue/pods/p/log?container=pytorch "},
		"logs run/a --rank 0":          {out: "epoch 1\n", asked: "GET /api/v1/namespaces/blue/pods/p/log?container=pytorch "},
		"logs run/a --tail 3":          {out: "epoch 1\n", asked: "GET /api/v1/namespaces/blue/pods/p/log?container=pytorch&tailLines=3 "},
		"logs run/a -p --since 2m":     {out: "epoch 1\n", asked: "GET /api/v1/namespaces/blue/pods/p/log?container=pytorch&previous=true&sinceSeconds=120 "},
		"logs run/a -c side --tail 0":  {out: "epoch 1\n", asked: "GET /api/v1/namespaces/blue/pods/p/log?container=side&tailLines=0 "},
		"run cancel a":                 {out: "Run a is cancelled in namespace blue\n", progress: old("cancel"), asked: "PATCH " + group + `/namespaces/blue/runs/a?fieldManager=mlbatch {"spec":{"cancel":true}}`},
		"run retry a --namespace=blue": {out: "was submitted in namespace blue\n", progress: old("retry"), asked: `"codeflare.dev/retry-of":"a"`},
	} {
		t.Run(line, func(t *testing.T) {
			home(t)
			kubeconfig, asked := apiServer(t)
			out, progress, err := command(t, append(strings.Fields(line), "--kubeconfig="+kubeconfig)...)
			if err != nil || !strings.Contains(out, row.out) || row.out == "" && out != "" || progress != row.progress {
				t.Errorf("got %q, %q, %v", out, progress, err)
			}
			changes := asked()
			if (row.asked == "") != (len(changes) == 0) || row.asked != "" && !slices.ContainsFunc(changes, func(c string) bool { return strings.Contains(c, row.asked) }) {
				t.Errorf("the server was asked %q, want %s", changes, row.asked)
			}
		})
	}
}

func TestTheExampleOfThePageIsSubmitted(t *testing.T) {
	_, file := example(t, researchers, withData)
	home(t)
	kubeconfig, asked := apiServer(t)
	out, progress, err := command(t, "run", "submit", file, "--skip-checks", "--kubeconfig="+kubeconfig)
	if err != nil || progress != "note: Run digits-1: there is no size xs, nor any other: an administrator adds a RunSizeConfiguration\n" {
		t.Errorf("got %q, %v", progress, err)
	}
	if want := "Application digits was applied in namespace blue\nDataSet pictures was applied in namespace blue\nRun digits-1 was submitted in namespace blue\n"; out != want {
		t.Errorf("got %s", out)
	}
	var requests []string
	for _, line := range asked() {
		method, rest, _ := strings.Cut(line, " "+group+"/namespaces/blue/")
		url, _, _ := strings.Cut(rest, " ")
		requests = append(requests, method+" "+url)
	}
	want := []string{ // all of it is tried first
		"PATCH applications/digits?dryRun=All&fieldManager=mlbatch",
		"PATCH datasets/pictures?dryRun=All&fieldManager=mlbatch",
		"POST runs?dryRun=All&fieldManager=mlbatch&fieldValidation=Strict",
		"PATCH applications/digits?fieldManager=mlbatch",
		"PATCH datasets/pictures?fieldManager=mlbatch",
		"POST runs?fieldManager=mlbatch&fieldValidation=Strict",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What a size means by gpu, a member cannot read: it is in the configuration of the controller.
func TestAPlanHasTheGPUsOfTheFlag(t *testing.T) {
	file := fileOf(t, []byte(`{apiVersion: codeflare.dev/v1alpha1, kind: Application, metadata: {name: digits}, spec: {api: shell, image: a, command: b, supportsGpu: true}}
---
{apiVersion: codeflare.dev/v1alpha1, kind: RunSizeConfiguration, metadata: {name: own}, spec: {config: {sm: {workers: 1, cpu: 1, memory: 1Gi, gpu: 1}}}}
---
{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: digits-1}, spec: {application: {name: digits}, supportsGpu: true}}`))
	home(t)
	kubeconfig, _ := apiServer(t)
	for _, line := range []string{"run plan --offline", "run plan", "run submit --dry-run --skip-checks"} {
		args := append(strings.Fields(line), file, "--kubeconfig="+kubeconfig)
		for flag, want := range map[string]string{"": "nvidia.com/gpu", "amd.com/gpu": "amd.com/gpu"} {
			out, _, err := command(t, append(args, "--gpu-resource-name="+flag)...)
			if want = "# Run digits-1: 1 worker of 1 cpu, 1Gi memory, 1 " + want + "\n"; err != nil || !strings.HasPrefix(out, want) {
				t.Errorf("mlbatch %s with %q says %q, %v", line, flag, out, err)
			}
		}
	}
}

func TestFilesOfAnotherNamespaceThanTheFlagAreNotSubmitted(t *testing.T) {
	home(t)
	file := fileOf(t, []byte(`{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: a, namespace: red}, spec: {application: {name: a}}}`))
	out, progress, err := command(t, "run", "submit", file, "-n", "blue")
	wording.OneSentence(t, out+progress, err, "Run a has namespace red, but --namespace is blue: remove one of them")
}
