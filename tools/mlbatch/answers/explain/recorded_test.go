// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/recording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// recordedHead is the first line of what a cluster test has recorded.
var recordedHead = regexp.MustCompile(`^` + recording.Head + `Kubernetes v\S+ and Kueue v\S+ on a \S+ cluster, 20\d\d-\d\d-\d\d\.$`)

// What mlbatch why read on clusters of make scenes and make long-stories has the cause for which the scene was made:
// that by which its file is called.
func TestRecordedScenes(t *testing.T) {
	golden.Pairs(t, "testdata/recorded", func(t *testing.T, in []byte) []byte {
		head, _, _ := bytes.Cut(in, []byte("\n"))
		if !recordedHead.Match(head) {
			t.Errorf("%q does not say when it was recorded, and of what: cluster tests write it", head)
		}
		e, text := answer(t, in)
		code := explain.Code(filepath.Base(t.Name()))
		if !slices.ContainsFunc(e.Causes, func(c explain.Cause) bool { return c.Code == code }) {
			t.Errorf("the answer has not the cause %s", code)
		}
		return text
	})
}

// sceneMade is where a cluster test makes a scene: a row of a list, or a step of a story.
var sceneMade = regexp.MustCompile(`(?m)^\t\{?"([A-Z][A-Za-z]+)"(?::|, scene)|untilWhyNames\(ctx, cfg, map\[explain\.Code\]string\{"([A-Za-z]+)"`)

// Every recorded scene is made anew by a cluster test, and what such tests make is the answer to a recorded scene.
func TestTheRecordedScenesAreThoseOfTheClusterTests(t *testing.T) {
	made := map[string]bool{}
	for _, pattern := range []string{"test/scenes/*_test.go", "test/e2e/why_test.go", "test/e2e/runs_test.go"} {
		for _, file := range glob(t, filepath.Join("../../../..", pattern)) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range sceneMade.FindAllStringSubmatch(string(text), -1) {
				made[found[1]+found[2]] = true
			}
		}
	}
	for _, file := range glob(t, "testdata/recorded/*.in.yaml") {
		if name := strings.TrimSuffix(filepath.Base(file), ".in.yaml"); !made[name] {
			t.Errorf("no cluster test makes the scene %s: remove its file", name)
		}
	}
	answers := answered(t, "testdata/recorded")
	for code := range made {
		if !answers[explain.Code(code)] {
			t.Errorf("the scene %s is not recorded: see docs/testing.md", code)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file is %s: %v", pattern, err)
	}
	return files
}
