// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/test/golden"
)

const researchers = "../../docs/codeflare.md"

// withData is the heading of the example of the page for researchers that is planned there.
const withData = "## An example with data\n"

// example is a page, and a file with the first manifest below a heading.
func example(t *testing.T, name, heading string) (page, file string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("the page has no %q", heading)
	}
	_, rest, _ := strings.Cut(below, "```yaml\n")
	manifest, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	return string(text), fileOf(t, []byte(manifest))
}

// fileOf is a file with some manifests.
func fileOf(t *testing.T, manifests []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, manifests, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestATerminalDoesNotObeyANote(t *testing.T) {
	var out bytes.Buffer
	printNotes(&out, []string{"team red is not active: \x1b[2Jnone\nat all"})
	if want := "note: team red is not active: [2Jnone at all\n"; out.String() != want {
		t.Errorf("got %q", &out)
	}
}

// The example of the page for researchers can be planned without a cluster.
func TestTheExampleOfThePageHasAPlan(t *testing.T) {
	_, file := example(t, researchers, withData)
	out, notes, err := command(t, "run", "plan", "--offline", file)
	if err != nil || notes != "note: the files have no RunSizeConfiguration: the default sizes are used\n" {
		t.Fatalf("got %q, %v", notes, err)
	}
	golden.Compare(t, filepath.Join("testdata", "digits.plan.yaml"), []byte(out))
	again, _, err := command(t, "run", "plan", "--offline", "-o", "json", "-n", "blue", file)
	if err != nil || !strings.Contains(again, `"namespace": "blue"`) {
		t.Errorf("as JSON it is %s, %v", again, err)
	}
}

// The end-to-end tests run it.
func TestTheFirstExampleOfThePageCanBePlanned(t *testing.T) {
	_, file := example(t, researchers, "## From nothing to a finished Run\n")
	if out, _, err := command(t, "run", "plan", "--offline", file); err != nil || !strings.HasPrefix(out, "# Run hello: 1 worker of 100m cpu, 64Mi memory\n") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestTheSamplesCanBePlanned(t *testing.T) {
	files, err := filepath.Glob("../../samples/codeflare/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no samples: %v", err)
	}
	for _, file := range files {
		if out, _, err := command(t, "run", "plan", "--offline", file); err != nil || out == "" {
			t.Errorf("%s: got %q, %v", file, out, err)
		}
	}
}

// Who has no cluster needs no flag.
func TestAPlanNeedsNoKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", "/no/such/file")
	for _, sample := range []string{"digits", "workflow"} {
		file := "../../samples/codeflare/" + sample + ".yaml"
		offline, _, err := command(t, "run", "plan", "--offline", file)
		if err != nil {
			t.Fatal(err)
		}
		if out, _, err := command(t, "run", "plan", file); err != nil || out != offline {
			t.Errorf("%s: got %q, %v", sample, out, err)
		}
	}
}

// The page shows the sizes that the command takes if files have none.
func TestThePageShowsTheDefaultSizes(t *testing.T) {
	sizes := runplan.DefaultSizes().Spec.Config
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		memory := sizes[a].Memory
		return memory.Cmp(sizes[b].Memory.Quantity)
	})
	table := "| size | workers | cpu | memory | GPUs |\n|---|---|---|---|---|\n"
	for _, name := range names {
		s := sizes[name]
		table += fmt.Sprintf("| `%s` | %d | %s | %s | %d |\n", name, s.Workers, &s.CPU, &s.Memory, s.GPU)
	}
	golden.Between(t, researchers, "<!-- sizes: written by go test ./tools/mlbatch -run TestThePage -update -->\n", "<!-- end of sizes -->", table)
}

// A command or a flag that the page does not name is unknown to researchers.
func TestThePageNamesAllCommandsOfRuns(t *testing.T) {
	page, err := os.ReadFile(researchers)
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range slices.Concat(runCommand("1").Commands(), queueCommand().Commands()) {
		if cmd.Hidden {
			continue
		}
		_, rest, found := strings.Cut(string(page), "\n| `mlbatch "+cmd.Parent().Name()+" "+cmd.Use+"` |")
		row, _, _ := strings.Cut(rest, "\n")
		if !found {
			t.Errorf("the page has no row for mlbatch run %s", cmd.Use)
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if !slices.Contains(ofAll, flag.Name) && !strings.Contains(row, "--"+flag.Name) {
				t.Errorf("the row of mlbatch run %s lacks --%s", cmd.Use, flag.Name)
			}
		})
	}
}
