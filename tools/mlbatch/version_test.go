// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestVersionComparesWithTheCluster(t *testing.T) {
	deployed := func(chart string) map[string]string {
		labels := `"labels":{"helm.sh/chart":"` + chart + `","app.kubernetes.io/part-of":"mlbatch"}`
		return map[string]string{
			deployments:             list("apps/v1", "Deployment", `{"metadata":{"name":"appwrapper-controller-manager","namespace":"ours",`+labels+`}}`),
			inBlue + "/localqueues": list("kueue.x-k8s.io/v1beta2", "LocalQueue", `{"metadata":{"name":"default","namespace":"blue"}}`, `{"metadata":{"name":"b","namespace":"blue",`+strings.Replace(labels, "appwrapper-", "teams-", 1)+`}}`),
		}
	}
	for name, row := range map[string]struct {
		world        map[string]string
		forbidden    []string
		prints, note string
	}{
		"the same":              {deployed("appwrapper-0.1.0"), nil, "platform 0.1.0\n", ""},
		"a member":              {deployed("appwrapper-0.1.7"), []string{deployments}, "platform 0.1.7\n", ""},
		"the next release":      {deployed("appwrapper-0.2.0"), nil, "platform 0.2.0\n", ""},
		"too far apart":         {deployed("appwrapper-0.3.0"), nil, "platform 0.3.0\n", "note: mlbatch 0.1.0 and the platform 0.3.0 are more than one minor version apart: use the mlbatch of release 0.3.0, or ask an administrator to upgrade\n"},
		"a development version": {deployed("appwrapper-0.2.0-rc.1"), nil, "platform 0.2.0-rc.1\n", ""},
		"another major version": {deployed("appwrapper-1.1.0"), nil, "platform 1.1.0\n", "note: mlbatch 0.1.0 and the platform 1.1.0 are more than one minor version apart"},
		"no platform":           {deployed(""), nil, "", "note: the cluster has no part of MLBatch that you can see: ask an administrator whether the platform is installed\n"},
		"who may see neither":   {deployed("appwrapper-0.1.0"), []string{"/apis"}, "", "note: you may not list localqueues in namespace blue: ask an administrator for a role with this right\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, progress, _, err := ask(t, row.world, "version", row.forbidden...)
			if err != nil || out != "mlbatch  0.1.0\n"+row.prints || !strings.HasPrefix(progress, row.note) || row.note == "" && progress != "" {
				t.Errorf("got %q, %q, %v", out, progress, err)
			}
		})
	}
	home(t)
	out, progress, err := command(t, "version", "--kubeconfig=testdata/nobody.yaml")
	if err != nil || out != "mlbatch  0.1.0\n" || !strings.HasPrefix(progress, "note: cannot list deployments: check --kubeconfig and --context: ") || strings.Count(progress, "\n") != 1 {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
	t.Setenv("KUBECONFIG", "/no/such/file")
	out, progress, err = command(t, "version")
	if err != nil || out != "mlbatch  0.1.0\n" || progress != "note: cannot find the cluster: there is none in /no/such/file: name a kubeconfig with --kubeconfig or KUBECONFIG\n" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

func TestValuesOfFlagsAreCompleted(t *testing.T) {
	world := map[string]string{"/api/v1/namespaces": list("v1", "Namespace", `{"metadata":{"name":"red"}}`, `{"metadata":{"name":"blue"}}`)}
	kubeconfig, _ := whyServer(t, world)
	member, _ := whyServer(t, world, "/api/v1/namespaces")
	for line, want := range map[string]string{
		"list --kubeconfig=" + kubeconfig + " --namespace ": "blue\nred\n",
		"status -n ": "",
		"install --kubeconfig=" + kubeconfig + " -n ": "blue\nred\n",
		"top --kubeconfig=" + member + " -n ":         "blue\n",
		"top --kubeconfig=" + member + " --context ":  "c\n",
		"list -o ":                "table\nwide\njson\nyaml\n",
		"run plan --output ":      "yaml\njson\n",
		"top --by ":               "team\nqueue\nnode\nflavor\n",
		"usage --by ":             "team\nuser\nqueue\ncause\nappwrapper\n",
		"check --fail-on ":        "error\nwarning\nnote\n",
		"list --state ":           "Queued\nStarting\nRunning\n",
		"team set --stop-policy ": "None\nHold\nHoldAndDrain\n",
		"install --profile ":      "every-part\nkubernetes\n",
	} {
		home(t)
		t.Setenv("KUBECONFIG", "/no/such/file")
		out, _, err := command(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if err != nil || !strings.HasPrefix(out, want) || !strings.HasSuffix(out, ":4\n") {
			t.Errorf("%s: got %q, %v", line, out, err)
		}
	}
}
