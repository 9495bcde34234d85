// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEveryRunOfALaneThatIsRepeatedIsLogged(t *testing.T) {
	r := repo(t.TempDir())
	mark := filepath.Join(t.TempDir(), "runs")
	write(t, r, flakesFile, "2026-01-01T00:00Z\t0123456789ab\tother\talone\tpassed\t1.0\n")
	head := commit(t, r)
	t.Chdir(string(r))
	t.Setenv("GOFLAGS", "-trimpath")
	// The second run fails.
	command := `echo $GOFLAGS >> ` + mark + `; [ $(wc -l < ` + mark + `) != 2 ] || { echo "--- FAIL: TestOnce (0.1s)"; echo "    once_test.go:1: bad luck"; exit 1; }`
	s := session{ctx: t.Context(), repo: "."}
	if err := s.repeat(command, 3, false); err == nil || !strings.HasSuffix(err.Error(), "failed 1 times of 3") {
		t.Errorf("it ends with %v", err)
	}
	log := textOf(t, flakesFile)
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if len(lines) != 4 {
		t.Fatalf("the log is\n%s", log)
	}
	for i, want := range []string{"passed\t0.0", "failed\t0.0\tTestOnce", "passed\t0.0"} {
		if line := lines[i+1]; !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\dZ\t` + head + `\t` + regexp.QuoteMeta(command) + `\talone\t` + want + `$`).MatchString(line) {
			t.Errorf("line %d is %q", i+2, line)
		}
	}
	if flags := textOf(t, mark); !strings.HasPrefix(flags, "-trimpath -count=1\n") {
		t.Errorf("Go may repeat what its cache says: %q", flags)
	}
	if green, _ := streak(log, command); green != 1 {
		t.Errorf("the last %d runs passed", green)
	}
}

func textOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestTheStreakOfALane(t *testing.T) {
	run := func(lane, load, verdict string) string {
		return "2026-01-01T00:00Z\tchanged\t" + lane + "\t" + load + "\t" + verdict + "\t1.0\n"
	}
	log := run("unit", "alone", "passed") + run("unit", "loaded", "failed") + run("unit", "loaded", "passed") + run("e2e", "alone", "failed") + run("unit", "alone", "passed") + "rubbish\n"
	if green, loaded := streak(log, "unit"); green != 2 || loaded != 1 {
		t.Errorf("%d runs, %d of them under load", green, loaded)
	}
}

func TestWhatCanBeRepeated(t *testing.T) {
	for name, want := range map[string]string{
		"lint": "make --no-print-directory lint", "go test ./x -run Y": "sh -c go test ./x -run Y",
	} {
		if l, err := laneOrCommand(name); err != nil || strings.Join(l.command(), " ") != want {
			t.Errorf("%s runs %q, error %v", name, l.command(), err)
		}
	}
	for _, name := range []string{"", "lnit"} {
		if _, err := laneOrCommand(name); err == nil {
			t.Errorf("%q can be repeated", name)
		}
	}
}

func TestTheLoadEnds(t *testing.T) {
	end, err := burn(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	burning := burners(t)
	end()
	if len(burning) == 0 {
		t.Error("nothing keeps the processors busy")
	}
	for _, pid := range burners(t) {
		if slices.Contains(burning, pid) {
			t.Errorf("process %s goes on", pid)
		}
	}
}

// burners returns the processes that this test has started and that are busy.
func burners(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pids, _ := os.ReadFile(file)
		for pid := range strings.FieldsSeq(string(pids)) {
			if command, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline")); strings.Contains(string(command), "while") {
				all = append(all, pid)
			}
		}
	}
	return all
}
