// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The whole way: make fails, the tests that failed are remembered, make passes, and the record says so.
func TestAFlakyLaneIsRecordedAsFlaky(t *testing.T) {
	r := repo(t.TempDir())
	mark := filepath.Join(t.TempDir(), "tried")
	write(t, r, logFile, "")
	write(t, r, "Makefile", "helm:\n\t@test -e "+mark+" || { touch "+mark+"; echo '--- FAIL: TestOnce (0.1s)'; exit 1; }\n")
	commit(t, r)
	t.Chdir(string(r))
	s := session{ctx: t.Context(), repo: ".", begin: time.Now(), record: true}
	now := situation{lanes: lanes, names: []string{"helm"}, record: true, changed: map[string]bool{"helm": false}, cannot: func(lane) string { return "" }}
	results := now.plan().follow(s.lane, s.elapsed)
	log, err := r.readLog()
	if err != nil || !log["helm"].flaky {
		t.Errorf("the record is %v, error %v", log, err)
	}
	var out bytes.Buffer
	printResults(&out, lanes, results, log)
	if err := verdictOf(results); err != nil || !strings.HasSuffix(out.String(), "\n\nhelm is flaky: it failed at first: TestOnce. Mend it before new work.\n\n1 passed, 0 failed\n") {
		t.Errorf("the run ends with %v and prints\n%s", err, out.String())
	}
}
