// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// handMade is a deadline that does not scale with the machine.
var handMade = regexp.MustCompile(`wait\.PollUntilContextTimeout\(|context\.WithTimeout\(|time\.After\((\d+ ?\* ?)?time\.(Second|Minute)\)|(end :=|Deadline\().*time\.Now\(\)\.Add\(`)

// deadlinesOfTheirOwn are files whose times are no limit of a wait.
var deadlinesOfTheirOwn = map[string]string{
	"controller/internal/activity/prometheus_test.go": "a server that is slower than this is the test",
	"controller/internal/broker/http_test.go":         "the end of the time is the test",
	"controller/internal/worker/worker_test.go":       "the end of the time is the test",
	"test/chaos/proxy_test.go":                        "a watch that ends and a slow answer are the faults",
	"test/e2e/audit_test.go":                          "a pause between two looks",
	"test/lanes/command.go":                           "the limit of a lane",
	"test/patience/patience.go":                       "the package itself",
	"test/vm/machine.go":                              "an emulated machine, whose times are chosen for it",
	"test/vm/pods.go":                                 "an emulated machine, whose times are chosen for it",
}

func TestWaitsOfTestsScaleWithTheMachine(t *testing.T) {
	used := map[string]bool{}
	for _, file := range filesThatEnd(t, ".go") {
		name := filepath.ToSlash(strings.TrimPrefix(file, root+"/"))
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "test/") || inOtherModule(name) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			if !handMade.MatchString(line) || strings.Contains(line, "patience.") {
				continue
			}
			used[name] = true
			if deadlinesOfTheirOwn[name] == "" {
				t.Errorf("%s:%d has a deadline that does not scale with the machine: use test/patience, or name the file in test/arch with a reason", name, number)
			}
		}
	}
	for name := range deadlinesOfTheirOwn {
		if !used[name] {
			t.Errorf("%s has no deadline of its own any more", name)
		}
	}
}

// inOtherModule reports whether a file cannot import test/patience.
func inOtherModule(name string) bool {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}
