// SPDX-License-Identifier: Apache-2.0

package auditlog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mlbatch/mlbatch/test/auditlog"
)

func TestNewsAreWhatWasWrittenSinceTheLastCall(t *testing.T) {
	cluster := t.TempDir()
	file := filepath.Join(cluster, "log", "audit.log")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	line := `{"verb":"patch","user":{"username":"system:serviceaccount:mlbatch-system:ours"},"objectRef":{"resource":"appwrappers","subresource":"status"}}` + "\n"
	log := auditlog.Of(cluster)
	for _, step := range []struct {
		text string
		news int
	}{
		{line + line, 2},
		{line + line, 0},
		{line + line + line + line[:20], 1}, // the last line is being written
		{line + line + line + line, 1},
		{line, 1}, // rotated
	} {
		if err := os.WriteFile(file, []byte(step.text), 0o644); err != nil {
			t.Fatal(err)
		}
		news, err := log.News()
		if err != nil || len(news) != step.news {
			t.Fatalf("got %d requests and %v, want %d, of %q", len(news), err, step.news, step.text)
		}
		for _, r := range news {
			if r.Account("mlbatch-system") != "ours" || r.Account("other") != "" || r.What() != "patch appwrappers/status" {
				t.Errorf("got %q by %q", r.What(), r.Account("mlbatch-system"))
			}
		}
	}
}

func TestALogThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := auditlog.Of(t.TempDir()).News(); err == nil {
		t.Error("there is no log, and no error")
	}
}
