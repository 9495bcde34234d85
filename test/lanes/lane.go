// SPDX-License-Identifier: Apache-2.0

package main

// lane is a part of the tests that is run, timed and recorded as a unit. Its command is the
// Makefile target with its name. The log has its duration.
type lane struct {
	name string
	// essential lanes always run in 'make test'. The others are heavy.
	essential bool
	// root is true if the lane needs root, unless the environment variable is set.
	root   bool
	unless string
	// more are inputs that neither its command nor the sources name: packages like ./tools/mlbatch with what they
	// import, files and folders.
	more []string
	// shell is a command that is no target of the Makefile, and is only repeated.
	shell string
}

func (l lane) command() []string {
	if l.shell != "" {
		return []string{"sh", "-c", l.shell}
	}
	return []string{"make", "--no-print-directory", l.name}
}

// lanes are all lanes in the order in which they run. Lanes that fail quickly, or build what
// others need, come first.
var lanes = []lane{
	{name: "verify-generate", essential: true},
	{name: "lint", essential: true},
	{name: "unit", essential: true},
	{name: "e2e", essential: true, root: true, unless: "E2E_KUBECONFIG"},
	{name: "simulated", essential: true, root: true},
	{name: "same", essential: true, root: true},
	{name: "fuzz", more: []string{"controller"}},
	{name: "mutants", more: []string{"charts", "controller", "docs", "samples", "setup", "test", "tools"}},
	{name: "platforms"},
	{name: "long-stories", root: true, unless: "E2E_KUBECONFIG"},
	{name: "undefended", root: true},
	{name: "robust", root: true},
	{name: "simulated-users", root: true},
	{name: "chaos", root: true},
	{name: "faults", root: true},
	{name: "realfaults", root: true},
	{name: "racks", root: true},
	{name: "scenes", root: true},
	{name: "counted", root: true},
	{name: "site-test", root: true, more: []string{
		"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "charts", "docs", "samples", "setup", "test/bench", "tools/artifacts/site", "tools/pytorchjob-generator", "./tools/mlbatch",
	}},
	{name: "helm"},
	{name: "flux", root: true},
	{name: "argocd", root: true, more: []string{"tools/artifacts/components/argocd"}},
	{name: "installs", root: true},
	{name: "airgap", root: true},
	{name: "container", root: true, more: []string{"Makefile", "./tools/localcluster/cmd", "./tools/localcluster/demo"}},
	{name: "nodes", root: true},
	{name: "kustomize", root: true, more: []string{"docs/migrate-kustomize.md"}},
	{name: "upgrade", root: true, more: []string{"docs/install.md", "docs/quota.md", "docs/remove.md", "docs/upgrade.md"}},
}
