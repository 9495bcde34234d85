// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// process adds a process to a fake /proc.
func (p proc) process(t *testing.T, pid, parent int, name, state, start string) {
	t.Helper()
	stat := fmt.Sprintf("%d (%s) %s %d %s%s 0 0\n", pid, name, state, parent, strings.Repeat("0 ", 17), start)
	dir := filepath.Join(string(p), strconv.Itoa(pid))
	write(t, filepath.Join(dir, "stat"), stat)
	write(t, filepath.Join(dir, "comm"), name+"\n")
}

func TestAKeeperIsIdentifiedByPIDAndStartTime(t *testing.T) {
	for name, c := range map[string]struct {
		name, state, start string
		alive              bool
	}{
		"the recorded process lives":                                       {"keeper", "S", "4711", true},
		"its name holds a space":                                           {"my keeper", "S", "4711", true},
		"its name looks like the end of a name":                            {"a) S 1 (b) Z 2", "S", "4711", true},
		"the machine was started anew, and its pid and time are another's": {"other boot", "S", "4711", false},
		"its pid was given to another process":                             {"keeper", "S", "9999", false},
		"it is a zombie":                                                   {"keeper", "Z", "4711", false},
		"it is a zombie with an odd name":                                  {"a) S (b", "Z", "4711", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, dir := proc(t.TempDir()), t.TempDir()
			p.process(t, 42, 1, c.name, c.state, c.start)
			boot := filepath.Join(string(p), "sys", "kernel", "random", "boot_id")
			write(t, boot, "first\n")
			if err := plan.Write(dir, plan.KeeperFile, plan.Keeper{PID: 42, Boot: "first", StartTime: "4711"}); err != nil {
				t.Fatal(err)
			}
			if c.name == "other boot" {
				write(t, boot, "second\n")
			}
			keeper, alive := p.keeperOf(dir)
			if alive != c.alive || keeper.PID != 42 {
				t.Errorf("keeper %v, alive %t", keeper, alive)
			}
		})
	}
}

func TestAKeeperNeedsARecordAndAProcess(t *testing.T) {
	p, dir := proc(t.TempDir()), t.TempDir()
	if _, alive := p.keeperOf(dir); alive {
		t.Error("a folder without a record has a keeper")
	}
	if err := plan.Write(dir, plan.KeeperFile, plan.Keeper{PID: 42}); err != nil {
		t.Fatal(err)
	}
	if _, alive := p.keeperOf(dir); alive {
		t.Error("a process that does not exist lives")
	}
}

func TestThisProcessIsFoundInTheRealProc(t *testing.T) {
	p := thisHost().proc
	if start, err := p.startTime(os.Getpid()); err != nil || start == "" || start == "0" {
		t.Errorf("started at %q, %v", start, err)
	}
	if k, err := p.keeper(os.Getpid()); err != nil || len(k.Boot) != 36 {
		t.Errorf("the record is %v, %v", k, err)
	}
	if got := p.parent(os.Getpid()); got != os.Getppid() {
		t.Errorf("the parent is %d, want %d", got, os.Getppid())
	}
}
