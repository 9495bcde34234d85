// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// lane is a part of the tests that is run, timed and recorded as a unit. Its command is the
// Makefile target with its name. The log has its duration.
type lane struct {
	name string
	// essential lanes always run in 'make test'. The others are heavy.
	essential bool
	// root is true if the lane needs root, unless the environment variable is set.
	root   bool
	unless string
	// inputs are the files and folders that can change the result.
	inputs []string
}

func (l lane) command() []string { return []string{"make", "--no-print-directory", l.name} }

// reads reports whether a file of the repository is an input of a lane.
func (l lane) reads(file string) bool {
	return slices.ContainsFunc(l.inputs, func(input string) bool {
		return input == file || strings.HasPrefix(file, input+"/")
	})
}

// Inputs that several lanes share.
var (
	everything = []string{
		".golangci.yaml", "LICENSE", "Makefile", "README.md", "charts", "controller", "docs", "go.mod", "go.sum", "samples", "setup", "test", "tools",
	}
	// cluster has the parts of a local cluster.
	cluster = []string{"go.mod", "go.sum", "setup", "test/workload", "tools/artifacts", "tools/localcluster", "tools/mlbatch/parts"}
	// platform has what is installed on the cluster, and the installer.
	platform = with(cluster, "charts", "controller", "samples", "tools/mlbatch")
)

// lanes are all lanes in the order in which they run. Lanes that fail quickly, or build what
// others need, come first.
var lanes = []lane{
	{name: "verify-generate", essential: true, inputs: []string{"Makefile", "charts/appwrapper/files", "controller", "docs/api", "tools/tools.mod", "go.mod"}},
	{name: "lint", essential: true, inputs: everything},
	{name: "unit", essential: true, inputs: everything},
	{name: "e2e", essential: true, root: true, unless: "E2E_KUBECONFIG", inputs: everything},
	{name: "simulated", essential: true, root: true, inputs: with(platform, "test/auditlog", "test/sandbox", "test/simulated")},
	{name: "fuzz", inputs: []string{"controller", "go.mod", "go.sum"}},
	{name: "mutants", inputs: []string{"charts", "controller", "go.mod", "go.sum", "setup", "test", "tools"}},
	{name: "platforms", inputs: []string{
		"Makefile", "controller/api", "controller/admissionrules", "controller/internal", "controller/runplan", "controller/runschema", "go.mod", "go.sum", "setup", "tools/mlbatch", "tools/pytorchjob-generator",
	}},
	{name: "long-stories", root: true, unless: "E2E_KUBECONFIG", inputs: with(platform, "docs/codeflare.md", "test/e2e", "test/explain", "test/quotawatch", "test/recording", "tools/pytorchjob-generator")},
	{name: "undefended", root: true, inputs: with(platform, "test/e2e", "test/explain", "test/quotawatch", "test/recording", "tools/pytorchjob-generator")},
	{name: "robust", root: true, inputs: with(cluster, "test/explain", "test/localcluster", "test/workload")},
	{name: "simulated-users", root: true, inputs: with(platform, "test/auditlog", "test/sandbox", "test/simulated")},
	{name: "chaos", root: true, inputs: with(cluster, "charts/appwrapper", "controller", "test/chaos")},
	{name: "faults", root: true, inputs: with(platform, "test/auditlog", "test/bench", "test/faults", "test/sandbox")},
	{name: "realfaults", root: true, inputs: with(platform, "test/explain", "test/realfaults", "test/sandbox", "tools/pytorchjob-generator")},
	{name: "racks", root: true, inputs: with(platform, "test/explain", "test/quotawatch", "test/racks", "test/sandbox")},
	{name: "scenes", root: true, inputs: with(platform, "test/recording", "test/sandbox", "test/scenes")},
	{name: "counted", root: true, inputs: with(platform, "test/counted", "test/e2e/testdata")},
	{name: "site-test", root: true, inputs: []string{
		"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "charts", "docs", "samples", "setup", "test/bench", "tools/artifacts/site", "tools/pytorchjob-generator",
	}},
	{name: "helm", inputs: with(platform, "test/helm")},
	{name: "flux", root: true, inputs: with(platform, "test/flux", "test/sandbox")},
	{name: "argocd", root: true, inputs: with(platform, "test/argocd", "test/sandbox")},
	{name: "installs", root: true, inputs: with(platform, "test/installer")},
	{name: "airgap", root: true, inputs: with(platform, "test/airgap", "test/sandbox")},
	{name: "container", root: true, inputs: with(platform, "Makefile", "test/container", "tools/commandline")},
	{name: "nodes", root: true, inputs: with(platform, "test/nodes", "test/sandbox")},
	{name: "kustomize", root: true, inputs: with(platform, "docs/migrate-kustomize.md", "test/kustomize", "test/markdown", "test/sandbox")},
	{name: "upgrade", root: true, inputs: with(platform, "docs/install.md", "docs/quota.md", "test/explain", "test/quotawatch", "test/sandbox", "test/upgrade", "test/workload")},
}

func with(inputs []string, more ...string) []string { return slices.Concat(inputs, more) }
