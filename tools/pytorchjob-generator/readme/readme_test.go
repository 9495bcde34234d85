// SPDX-License-Identifier: Apache-2.0

package readme_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/pytorchjob-generator/readme"
)

const (
	file  = "../README.md"
	begin = "<!-- From here on: generated from chart/values.yaml by go test ./tools/pytorchjob-generator/readme -update -->\n"
)

// The second half of the README is generated, the first half is written by hand.
func TestReadmeMatchesTheValues(t *testing.T) {
	values, err := os.ReadFile("../chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := readme.Values(string(values))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	written, _, found := strings.Cut(string(text), begin)
	if !found {
		t.Fatalf("%s lacks the line\n%s", file, begin)
	}
	golden.Compare(t, file, []byte(written+begin+"\n"+strings.TrimRight(reference, "\n")+"\n"))
}

func TestValues(t *testing.T) {
	got, err := readme.Values(`# Not about a value.

# ---------- the job

# Its name.
# Required.
jobName: null

# How much.
#   cpus: 2
#   gpus: 1
cpus: 1
gpus: 0

# A map.
resources:
  gpu:
    name: x
`)
	want := "### The job\n\n**`jobName`** (`null`)  \nIts name.\nRequired.\n\n" +
		"**`cpus`** (`1`), **`gpus`** (`0`)  \nHow much.\n\n```yaml\ncpus: 2\ngpus: 1\n```\n\n" +
		"**`resources`** (`{\"gpu\":{\"name\":\"x\"}}`)  \nA map.\n\n"
	if err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}
