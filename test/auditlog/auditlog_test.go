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

// The API server moves a log that is large to a file whose name has the time.
func TestNothingIsLostWhenTheLogIsMoved(t *testing.T) {
	cluster := t.TempDir()
	folder := filepath.Join(cluster, "log")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(verbs string) {
		t.Helper()
		var text string
		for _, verb := range verbs {
			text += `{"verb":"` + string(verb) + `"}` + "\n"
		}
		f, err := os.OpenFile(filepath.Join(folder, "audit.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	move := func(hour string) string {
		t.Helper()
		to := filepath.Join(folder, "audit-2026-11-26T"+hour+"-00-00.000.log")
		if err := os.Rename(filepath.Join(folder, "audit.log"), to); err != nil {
			t.Fatal(err)
		}
		return to
	}
	log := auditlog.Of(cluster)
	want := func(verbs string) {
		t.Helper()
		news, err := log.News()
		got := ""
		for _, r := range news {
			got += r.Verb
		}
		if got != verbs || err != nil {
			t.Fatalf("got %q and %v, want %q", got, err, verbs)
		}
	}
	write("ab")
	want("ab")
	write("c")
	move("10")
	write("def")
	move("11")
	write("g")
	want("cdefg")
	write("h")
	removed := move("12")
	write("i")
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	if news, err := log.News(); err == nil {
		t.Errorf("a part is removed, and it says %v", news)
	}
}

func TestALogThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := auditlog.Of(t.TempDir()).News(); err == nil {
		t.Error("there is no log, and no error")
	}
}
