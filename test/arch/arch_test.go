// SPDX-License-Identifier: Apache-2.0

// Package arch_test checks the import rules of docs/architecture.md: which package may import
// which.
package arch_test

import (
	"errors"
	"go/build"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mlbatch/mlbatch/"

// arrows is docs/architecture.md as a table: every package of controller/ and tools/, with the
// packages of this repository that it may import.
var arrows = map[string][]string{
	// The API types.
	"controller/api/v1beta2":            nil,
	"controller/api/codeflare/v1alpha1": nil,
	"controller/api/queue":              nil,
	// The core is pure: see pure.
	"controller/internal/kinds":           {"controller/api/v1beta2"},
	"controller/internal/podtemplate":     {"controller/api/v1beta2"},
	"controller/internal/spelling":        nil,
	"controller/internal/preemptionpause": nil,
	"controller/internal/deactivation":    nil,
	"controller/internal/reassignment":    {"controller/api/v1beta2", "controller/internal/podtemplate"},
	"controller/internal/nodehealth":      {"controller/api/v1beta2", "controller/internal/podtemplate"},
	"controller/internal/slackquota":      {"controller/api/v1beta2", "controller/internal/nodehealth"},
	"controller/quotareason":              nil,
	"controller/ledger":                   {"controller/api/v1beta2"},
	"controller/internal/lifecycle":       {"controller/api/v1beta2", "controller/internal/kinds", "controller/internal/nodehealth", "controller/ledger", "controller/quotareason"},
	// Admission rules and the configuration file.
	"controller/internal/config": {
		"controller/internal/preemptionpause", "controller/internal/spelling", "controller/internal/kinds", "controller/internal/lifecycle", "controller/internal/nodehealth", "controller/internal/podtemplate",
	},
	"controller/admissionrules": {
		"controller/api/v1beta2", "controller/internal/kinds", "controller/internal/podtemplate", "controller/internal/lifecycle",
		"controller/internal/spelling",
	},
	// What is made of a Run. It is pure, too.
	"controller/runplan":          {"controller/api/codeflare/v1alpha1", "controller/api/queue", "controller/api/v1beta2", "controller/admissionrules"},
	"controller/internal/runlife": {"controller/api/codeflare/v1alpha1", "controller/api/queue", "controller/api/v1beta2", "controller/runplan"},
	// The schema of Runs.
	"controller/runschema": {"controller/api/codeflare/v1alpha1"},
	// Reviews of access, which several shells request from the API server.
	"controller/internal/accessreview": nil,
	// What the API server records for objects of which webhooks decide.
	"controller/internal/fieldowners": nil,
	// Our own writes, for which the caches of shells are too late.
	"controller/internal/echoes": nil,
	// Which namespaces metrics still need.
	"controller/internal/namespacemetrics": nil,
	// How caches decode what they watch.
	"controller/internal/jsonwatch": nil,
	// Questions for a Prometheus.
	"controller/prometheus": nil,
	// Whether something can be watched yet.
	"controller/internal/watchable": {"controller/internal/accessreview"},
	// The controller's decisions about nodes, for tools.
	"controller/nodesigns": {"controller/api/v1beta2", "controller/internal/config", "controller/internal/nodehealth", "controller/internal/slackquota"},
	// Controllers that count what nodes have.
	"controller/internal/nodewatch": {"controller/internal/nodehealth", "controller/internal/slackquota", "controller/internal/watchable"},
	// Shells talk to the API server and never import each other.
	"controller/internal/servingcert":     {"controller/internal/config"},
	"controller/internal/othercontroller": {"controller/api/v1beta2"},
	"controller/internal/metricsaccess":   {"controller/internal/accessreview"},
	"controller/internal/admission": {
		"controller/api/v1beta2", "controller/internal/config", "controller/admissionrules", "controller/internal/kinds",
		"controller/internal/accessreview", "controller/internal/fieldowners",
	},
	"controller/internal/runadmission": {
		"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "controller/internal/accessreview", "controller/internal/fieldowners",
		"controller/runplan",
	},
	"controller/internal/appwrapper": {
		"controller/api/v1beta2", "controller/internal/config", "controller/admissionrules",
		"controller/internal/kinds", "controller/internal/podtemplate", "controller/internal/lifecycle", "controller/internal/nodehealth",
		"controller/internal/accessreview", "controller/internal/echoes", "controller/internal/namespacemetrics", "controller/ledger", "controller/quotareason",
	},
	"controller/internal/activity":         {"controller/internal/config", "controller/internal/lifecycle", "controller/prometheus"},
	"controller/internal/workload":         {"controller/api/v1beta2", "controller/internal/deactivation", "controller/internal/jsonwatch", "controller/internal/podtemplate", "controller/internal/preemptionpause", "controller/internal/reassignment", "controller/internal/watchable", "controller/quotareason"},
	"controller/internal/slackqueue":       {"controller/internal/nodehealth", "controller/internal/nodewatch", "controller/internal/slackquota"},
	"controller/internal/nodesizes":        {"controller/api/v1beta2", "controller/internal/nodehealth", "controller/internal/nodewatch", "controller/internal/slackquota"},
	"controller/internal/capacityprovider": {"controller/internal/nodehealth", "controller/internal/nodewatch", "controller/internal/slackquota"},
	"controller/internal/cordon":           {"controller/api/v1beta2", "controller/internal/nodehealth"},
	"controller/internal/run": {
		"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "controller/admissionrules", "controller/internal/accessreview",
		"controller/internal/echoes", "controller/internal/namespacemetrics", "controller/internal/runlife", "controller/runplan",
	},
	// What the main packages have in common.
	"controller/internal/election": {},
	"controller/internal/serving":  {"controller/internal/config", "controller/internal/election", "controller/internal/metricsaccess", "controller/internal/servingcert"},
	// main assembles the parts.
	"controller": {
		"controller/api/v1beta2", "controller/internal/config",
		"controller/internal/activity", "controller/internal/serving", "controller/internal/admission", "controller/internal/appwrapper", "controller/internal/capacityprovider", "controller/internal/cordon", "controller/internal/jsonwatch", "controller/internal/nodesizes", "controller/internal/nodewatch", "controller/internal/othercontroller", "controller/internal/slackqueue", "controller/internal/workload",
	},
	"controller/runs": {
		"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "controller/internal/accessreview", "controller/internal/config",
		"controller/internal/jsonwatch", "controller/internal/run", "controller/internal/runadmission", "controller/internal/serving", "controller/internal/servingcert", "controller/runplan",
	},
	// The program in the pods of Runs.
	"controller/agent": {
		"controller/api/queue", "controller/internal/broker", "controller/internal/fetch", "controller/internal/taskqueue", "controller/internal/taskstore", "controller/internal/worker",
	},
	"controller/internal/fetch": nil,
	// The work queue: taskqueue is pure.
	"controller/internal/taskqueue": {"controller/api/queue"},
	"controller/internal/taskstore": {"controller/internal/taskqueue"},
	"controller/internal/broker":    {"controller/api/queue", "controller/internal/taskqueue"},
	"controller/internal/worker":    {"controller/api/queue"},
	// How commands begin and end.
	"tools/commandline": {"setup"},
	"tools/complaints":  nil,
	// The mlbatch command, which builds for every operating system.
	"tools/mlbatch/parts":           {"setup"},
	"tools/mlbatch/quota":           {"controller/api/v1beta2", "controller/nodesigns"},
	"tools/mlbatch/images":          {"setup", "tools/mlbatch/parts", "tools/mlbatch/printing"},
	"tools/mlbatch/answers/explain": {"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "controller/admissionrules", "controller/nodesigns", "controller/quotareason", "tools/mlbatch/quota"},
	"tools/mlbatch/clusterstate":    {"controller/api/v1beta2", "controller/nodesigns", "tools/mlbatch/parts", "tools/mlbatch/printing", "tools/mlbatch/answers/top", "tools/mlbatch/answers/usage"},
	"tools/mlbatch/podcopy":         {"tools/mlbatch/printing"},
	"tools/mlbatch/podexec":         {"tools/mlbatch/printing"},
	"tools/mlbatch/podforward":      {"tools/mlbatch/printing"},
	"tools/mlbatch/podlogs":         {"controller/api/codeflare/v1alpha1", "tools/mlbatch/printing"},
	"tools/mlbatch/printing":        nil,
	"tools/mlbatch/why":             {"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "tools/mlbatch/answers/explain", "tools/mlbatch/parts", "tools/mlbatch/clusterstate"},
	"tools/mlbatch/answers/top":     {"controller/api/v1beta2", "controller/nodesigns", "tools/mlbatch/printing", "tools/mlbatch/quota"},
	"tools/mlbatch/answers/usage":   {"controller/admissionrules", "controller/api/v1beta2", "controller/ledger", "controller/nodesigns", "tools/mlbatch/quota", "tools/mlbatch/printing"},
	"tools/mlbatch/answers/checkup": {"controller/admissionrules", "controller/api/v1beta2", "controller/nodesigns", "setup", "tools/mlbatch/parts", "tools/mlbatch/quota"},
	"tools/mlbatch/clustercheck":    {"controller/api/v1beta2", "controller/nodesigns", "setup", "tools/mlbatch/answers/checkup", "tools/mlbatch/parts", "tools/mlbatch/printing", "tools/mlbatch/clusterstate"},
	"tools/mlbatch/work": {
		"controller/admissionrules", "controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "tools/mlbatch/answers/explain", "tools/mlbatch/podlogs", "tools/mlbatch/printing", "tools/mlbatch/quota", "tools/mlbatch/clusterstate",
		"tools/mlbatch/runs", "tools/mlbatch/submit", "tools/mlbatch/why",
	},
	"tools/mlbatch/web/guard": nil,
	"tools/mlbatch/web/views": {
		"controller/api/v1beta2", "controller/ledger", "tools/mlbatch/answers/checkup", "tools/mlbatch/answers/explain", "tools/mlbatch/answers/top", "tools/mlbatch/answers/usage", "tools/mlbatch/podlogs", "tools/mlbatch/printing", "tools/mlbatch/work",
	},
	"tools/mlbatch/web": {
		"tools/mlbatch/answers/audit", "tools/mlbatch/answers/checkup", "tools/mlbatch/answers/explain", "tools/mlbatch/answers/top", "tools/mlbatch/answers/usage", "tools/mlbatch/clustercheck", "tools/mlbatch/clusterstate",
		"tools/mlbatch/printing", "tools/mlbatch/snapshot", "tools/mlbatch/web/guard", "tools/mlbatch/web/views", "tools/mlbatch/why", "tools/mlbatch/work",
	},
	"tools/mlbatch/install/preflight":   {"setup", "tools/mlbatch/parts"},
	"tools/mlbatch/install/access":      nil,
	"tools/mlbatch/install/changes":     nil,
	"tools/mlbatch/install/helmrelease": {"setup", "tools/complaints", "tools/mlbatch/install/access", "tools/mlbatch/install/preflight"},
	"tools/mlbatch/install/wait":        {"tools/mlbatch/install/access", "tools/mlbatch/install/helmrelease", "tools/mlbatch/parts"},
	"tools/mlbatch/install/uninstall":   {"tools/mlbatch/clusterstate", "tools/mlbatch/install/access", "tools/mlbatch/install/helmrelease", "tools/mlbatch/install/preflight", "tools/mlbatch/parts"},
	"tools/mlbatch/install": {
		"setup", "tools/mlbatch/parts", "tools/mlbatch/install/access", "tools/mlbatch/install/changes", "tools/mlbatch/install/helmrelease",
		"tools/mlbatch/install/preflight", "tools/mlbatch/install/wait",
	},
	"tools/mlbatch/answers/audit": {"controller/admissionrules", "controller/api/v1beta2", "tools/mlbatch/quota"},
	"tools/mlbatch/snapshot":      {"controller/admissionrules", "controller/api/v1beta2", "tools/mlbatch/answers/audit", "tools/mlbatch/clusterstate", "tools/mlbatch/quota"},
	"tools/mlbatch/submit":        {"controller/admissionrules", "controller/api/v1beta2", "tools/mlbatch/clusterstate", "tools/mlbatch/answers/explain", "tools/mlbatch/quota", "tools/pytorchjob-generator"},
	"tools/mlbatch/teamsfile":     {"tools/mlbatch/printing"},
	"tools/mlbatch/teamschart":    {"charts", "tools/mlbatch/install/helmrelease"},
	"tools/mlbatch/teamsdiff":     {"controller/api/v1beta2", "controller/nodesigns", "tools/mlbatch/printing", "tools/mlbatch/clusterstate", "tools/mlbatch/teamsfile"},
	"tools/mlbatch/manifests":     nil,
	"tools/mlbatch/pack": {
		"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "controller/admissionrules", "tools/mlbatch/manifests",
	},
	"tools/mlbatch/runs": {"controller/admissionrules", "controller/api/codeflare/v1alpha1", "controller/api/queue", "controller/api/v1beta2", "controller/runplan", "controller/runschema", "setup", "tools/mlbatch/clusterstate", "tools/mlbatch/manifests", "tools/mlbatch/podlogs", "tools/mlbatch/printing", "tools/mlbatch/submit"},
	"tools/mlbatch": {
		"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "controller/prometheus", "setup", "tools/artifacts/atomicfile", "tools/commandline", "tools/mlbatch/answers/audit", "tools/mlbatch/snapshot", "tools/mlbatch/answers/checkup", "tools/mlbatch/clustercheck", "tools/mlbatch/clusterstate", "tools/mlbatch/install", "tools/mlbatch/quota",
		"tools/mlbatch/install/access", "tools/mlbatch/install/helmrelease", "tools/mlbatch/install/uninstall", "tools/mlbatch/manifests",
		"tools/mlbatch/answers/explain", "tools/mlbatch/images", "tools/mlbatch/pack", "tools/mlbatch/podcopy", "tools/mlbatch/podexec", "tools/mlbatch/podforward", "tools/mlbatch/podlogs", "tools/mlbatch/printing", "tools/mlbatch/runs", "tools/mlbatch/submit", "tools/mlbatch/answers/top",
		"tools/mlbatch/teamschart", "tools/mlbatch/teamsdiff", "tools/mlbatch/teamsfile", "tools/mlbatch/answers/usage", "tools/mlbatch/web", "tools/mlbatch/why", "tools/mlbatch/work",
	},
	// The chart that renders a training job.
	"tools/pytorchjob-generator":        {"controller/api/v1beta2", "controller/admissionrules", "tools/complaints"},
	"tools/pytorchjob-generator/readme": nil,
	// Generators, which create files from a checkout.
	"tools/artifacts/subprocess":        nil,
	"tools/artifacts/atomicfile":        nil,
	"tools/artifacts/filelock":          nil,
	"tools/artifacts/filecache":         {"tools/artifacts/filelock"},
	"tools/artifacts/compiler":          {"tools/artifacts/subprocess"},
	"tools/artifacts/debian":            {"tools/artifacts/subprocess"},
	"tools/artifacts/components":        {"setup", "tools/mlbatch/parts", "tools/artifacts/compiler", "tools/artifacts/filecache"},
	"tools/artifacts/images/archive":    {"tools/artifacts/atomicfile"},
	"tools/artifacts/images/controller": {"setup", "tools/artifacts/compiler", "tools/artifacts/images/archive", "tools/mlbatch/parts"},
	"tools/artifacts/images/workload":   {"tools/artifacts/compiler", "tools/artifacts/images/archive"},
	"tools/artifacts/images/ray":        {"tools/artifacts/components", "tools/artifacts/images/archive"},
	"tools/artifacts/images/s3":         {"tools/artifacts/components", "tools/artifacts/images/archive"},
	"tools/artifacts/images/torch": {
		"samples/pytorch-digits",
		"tools/artifacts/debian", "tools/artifacts/filecache", "tools/artifacts/images/archive", "tools/artifacts/subprocess",
	},
	"tools/artifacts/images":           {"tools/artifacts/images/controller", "tools/artifacts/images/torch", "tools/artifacts/images/workload"},
	"tools/artifacts/charts/packaging": {"setup", "tools/mlbatch/parts"},
	"tools/artifacts/charts":           {"tools/artifacts/charts/packaging"},
	"tools/artifacts/release/sbom":     {"setup"},
	"tools/artifacts/release": {
		"setup", "tools/artifacts/charts/packaging", "tools/artifacts/compiler", "tools/artifacts/images/archive",
		"tools/artifacts/images/controller", "tools/artifacts/release/sbom", "tools/mlbatch/parts",
	},
	// The local cluster, for Linux only.
	"tools/localcluster/pki":         nil,
	"tools/localcluster/plan":        {"tools/artifacts/atomicfile"},
	"tools/localcluster/keeper":      {"tools/localcluster/pki", "tools/localcluster/plan"},
	"tools/localcluster/processnode": {"tools/artifacts/atomicfile", "tools/localcluster/plan"},
	"tools/localcluster": {
		"setup", "tools/artifacts/atomicfile", "tools/artifacts/components", "tools/artifacts/debian", "tools/artifacts/filecache",
		"tools/artifacts/filelock", "tools/artifacts/images/archive", "tools/artifacts/images/workload", "tools/localcluster/pki", "tools/localcluster/plan",
	},
	"tools/localcluster/provider": {"setup", "tools/localcluster", "tools/localcluster/plan"},
	"tools/localcluster/platform": {
		"setup", "tools/artifacts/charts/packaging", "tools/artifacts/components", "tools/artifacts/images/archive", "tools/artifacts/images/ray", "tools/artifacts/images/s3",
		"tools/artifacts/images/torch", "tools/localcluster", "tools/localcluster/plan", "tools/mlbatch/install",
		"tools/mlbatch/install/access", "tools/mlbatch/install/helmrelease", "tools/mlbatch/parts",
	},
	"tools/localcluster/demo": {"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "tools/localcluster", "tools/localcluster/platform", "tools/mlbatch/runs"},
	"tools/localcluster/cmd":  {"tools/commandline", "tools/localcluster", "tools/localcluster/plan", "tools/localcluster/platform"},
}

// tried has imports that only tests may have: the installer is tested with the packaged charts,
// plans with objects that the schema accepts, the generator's jobs against those of Runs, the comparison of teams
// with what their chart renders, and the reconciler with the caches that main gives it.
var tried = map[string][]string{
	"tools/mlbatch/install/helmrelease": {"tools/artifacts/charts/packaging", "tools/mlbatch/parts"},
	"controller/runplan":                {"controller/runschema"},
	"controller/internal/broker":        {"controller/internal/taskstore", "controller/internal/worker"},
	"controller/internal/appwrapper":    {"controller/internal/jsonwatch"},
	"controller/internal/jsonwatch":     {"controller/api/v1beta2"},
	"tools/mlbatch":                     {"controller/api/queue", "controller/nodesigns", "controller/runplan"},
	"tools/pytorchjob-generator":        {"controller/api/codeflare/v1alpha1", "controller/runplan"},
	"tools/mlbatch/teamsdiff":           {"tools/mlbatch/teamschart"},
	"tools/mlbatch/web":                 {"controller/api/codeflare/v1alpha1", "controller/api/v1beta2", "tools/mlbatch/runs"},
}

// inRooms reports whether a package has a row in arrows.
func inRooms(name string) bool {
	return name == "controller" || strings.HasPrefix(name, "controller/") || strings.HasPrefix(name, "tools/")
}

// core are the packages that decide.
var core = []string{
	"controller/internal/kinds", "controller/internal/podtemplate", "controller/internal/lifecycle", "controller/internal/spelling",
	"controller/internal/nodehealth", "controller/internal/preemptionpause", "controller/internal/deactivation", "controller/internal/reassignment", "controller/internal/slackquota", "controller/ledger", "controller/quotareason", "controller/runplan", "controller/internal/runlife", "controller/internal/taskqueue", "tools/mlbatch/answers/explain", "tools/mlbatch/answers/checkup", "tools/mlbatch/quota",
}

// pure has the external imports of the core. None of them does I/O, waits, logs or draws random
// numbers. The linter forbids functions of time and meta that read the clock.
var pure = []string{
	"cmp", "crypto/sha256", "encoding/hex", "encoding/json", "errors", "fmt", "maps", "math", "net/url", "path", "regexp", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8",
	"k8s.io/api/apps/v1",
	"k8s.io/api/core/v1",
	"k8s.io/apimachinery/pkg/api/equality",
	"k8s.io/apimachinery/pkg/api/meta",
	"k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",
	"k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/runtime/schema",
	"k8s.io/apimachinery/pkg/types",
	"k8s.io/apimachinery/pkg/util/version",
	"k8s.io/component-helpers/resource",
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity",
	"sigs.k8s.io/kueue/apis/kueue/v1beta2",
}

// pkg is a package, named by its path in this repository, with its imports.
type pkg struct {
	name           string
	imports, tests []string
}

func TestArrowsPointDown(t *testing.T) {
	missing := maps.Clone(arrows)
	for _, p := range packages(t) {
		if !inRooms(p.name) {
			continue
		}
		allowed, listed := arrows[p.name]
		if !listed {
			t.Errorf("%s has no row in arrows: add what it may import here and in docs/architecture.md", p.name)
			continue
		}
		delete(missing, p.name)
		for _, imported := range ours(p.imports) {
			if !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s, which its row in arrows does not allow", p.name, imported)
			}
		}
		for _, imported := range ours(p.tests) {
			if imported != p.name && !slices.Contains(slices.Concat(allowed, tried[p.name]), imported) && !strings.HasPrefix(imported, "test/") {
				t.Errorf("a test of %s imports %s, which its row in arrows does not allow", p.name, imported)
			}
		}
	}
	for name := range missing {
		t.Errorf("%s has a row in arrows but does not exist", name)
	}
}

func TestTheCoreImportsOnlyWhatIsPure(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains(core, p.name) {
			continue
		}
		for _, imported := range p.imports {
			if !strings.HasPrefix(imported, module) && !slices.Contains(pure, imported) {
				t.Errorf("%s imports %s: the core must not do I/O, wait, log or use random numbers", p.name, imported)
			}
		}
	}
}

func TestProductCodeDoesNotImportTests(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.name, "test/") {
			continue
		}
		for _, imported := range ours(p.imports) {
			if strings.HasPrefix(imported, "test/") {
				t.Errorf("%s imports %s outside a test", p.name, imported)
			}
		}
	}
}

// ours returns the imports that are packages of this repository.
func ours(imports []string) []string {
	var names []string
	for _, imported := range imports {
		if name, is := strings.CutPrefix(imported, module); is {
			names = append(names, name)
		}
	}
	return names
}

func TestFolderNamesSayWhatIsInside(t *testing.T) {
	empty := []string{"util", "utils", "common", "helper", "helpers", "manager", "handler", "handlers", "base", "misc"}
	for _, p := range packages(t) {
		if name := path.Base(p.name); slices.Contains(empty, name) {
			t.Errorf("%s: the name %q does not say what the package is for", p.name, name)
		}
	}
}

func TestTheTopLevelIsTheArchitecture(t *testing.T) {
	rooms := []string{
		"charts", "controller", "setup", "tools", "samples", "test", "docs", "go.mod", "go.sum", "Makefile", "LICENSE",
		"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md",
		"bin", "dist", // built, not committed
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(rooms, e.Name()) {
			t.Errorf("%s is not in the tree of docs/architecture.md", e.Name())
		}
	}
}

// packages reads the imports of all packages of this module, including tests that start
// clusters. It opens the files itself, so that go test knows when its cached result is out of
// date.
func packages(t *testing.T) []pkg {
	t.Helper()
	files := build.Default
	files.BuildTags = []string{"cluster"}
	var all []pkg
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if dir != root && (outside(dir) || strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		read, err := files.ImportDir(dir, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			return nil
		}
		name, _ := filepath.Rel(root, dir) // dir is below root
		all = append(all, pkg{name: filepath.ToSlash(name), imports: read.Imports, tests: slices.Concat(read.TestImports, read.XTestImports)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// outside reports whether a folder is a separate module.
func outside(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

var root = filepath.Join("..", "..")
