// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/patience"
)

const programs = "../../../samples/programs"

// said is a line of a program of samples/programs.
type said struct {
	UID, Name, AsOf, Is, Because                            string
	Ended                                                   bool
	FailureRetries, StartupRetries, Migrations, Preemptions int32
}

// commands are the programs, by their language.
func commandsOfPrograms(t *testing.T) map[string][]string {
	t.Helper()
	built := filepath.Join(t.TempDir(), "follow")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, programs+"/follow").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("one of the programs is in Python: install Debian's package python3")
	}
	return map[string][]string{"Go": {built}, "Python": {python, programs + "/follow.py"}}
}

// A program that sees every change concludes what happened, step by step.
func TestProgramsTellWhatHappens(t *testing.T) {
	histories := slices.Concat(historiesOfNamedLives(t), historiesOfStories(t))
	for language, command := range commandsOfPrograms(t) {
		t.Run(language, func(t *testing.T) {
			p := newPlayback(false, histories)
			all := follow(t, command, p, false)
			p.judge(t, all)
			p.judgeEachPoint(t, all)
			for i, life := range namedLives {
				if got := stepsOf(all, p.lives[i].uid); !slices.Equal(got, life.want) {
					t.Errorf("%s: concluded %q, want %q", life.title, got, life.want)
				}
			}
		})
	}
}

// A program that misses changes, sees some twice or too late, and is killed again and again, never says what is not
// true, takes no end back, and knows the end.
func TestProgramsAreRightWhateverTheyMiss(t *testing.T) {
	histories := slices.Concat(historiesOfNamedLives(t), historiesOfStories(t))
	for language, command := range commandsOfPrograms(t) {
		t.Run(language, func(t *testing.T) {
			p := newPlayback(true, histories)
			p.judge(t, follow(t, command, p, true))
		})
	}
}

// follow runs a program while the histories happen, and returns what it said. With restarts, it is killed again and
// again: at rest, and while it reads what has happened.
func follow(t *testing.T, command []string, p *playback, restarts bool) []said {
	t.Helper()
	server := httptest.NewTLSServer(p)
	defer server.Close()
	folder := t.TempDir()
	arguments := append(slices.Clone(command[1:]), writeKubeconfig(t, folder, server), "team", filepath.Join(folder, "state.json"))
	ctx, cancel := patience.Context(t.Context())
	defer cancel()
	var out, errors bytes.Buffer
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, command[0], arguments...)
		cmd.Stdout, cmd.Stderr = &out, &errors
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	end := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		p.forget()
	}
	cmd := start()
	if err := p.await(ctx); err != nil {
		end(cmd)
		t.Fatalf("%v\n%s", err, errors.String())
	}
	for round := 0; p.goOn(); round++ {
		if restarts && round%4 == 3 { // while it reads
			end(cmd)
			cmd = start()
		}
		if err := p.await(ctx); err != nil {
			end(cmd)
			t.Fatalf("%v\n%s", err, errors.String())
		}
		if restarts && round%4 == 1 { // while it waits
			end(cmd)
			cmd = start()
		}
	}
	end(cmd)
	return parseSaid(t, out.Bytes())
}

func writeKubeconfig(t *testing.T, folder string, server *httptest.Server) string {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	text, err := json.Marshal(map[string]any{
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server.URL, "certificate-authority-data": authority}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": "secret"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "kubeconfig.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func parseSaid(t *testing.T, out []byte) []said {
	t.Helper()
	var all []said
	for line := range bytes.Lines(out) {
		var s said
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, s)
	}
	return all
}

// judge compares all that a program said with the truth.
func (p *playback) judge(t *testing.T, all []said) {
	t.Helper()
	last := map[string]said{}
	for _, s := range all {
		version, err := strconv.Atoi(s.AsOf)
		life, at := p.pointOf(s.UID, version)
		if err != nil || life == nil {
			t.Fatalf("%+v is about nothing: %v", s, err)
		}
		if wrong := life.contradiction(at, s.Is); wrong != "" {
			t.Error(wrong)
		}
		if s.Ended != slices.Contains([]string{"Succeeded", "Failed", "Deleted"}, s.Is) {
			t.Errorf("%s: is %s an end?", life.title, s.Is)
		}
		if was := last[s.UID]; was.Ended && s.Is != was.Is {
			t.Errorf("%s: it ended as %s, and then %s", life.title, was.Is, s.Is)
		}
		last[s.UID] = s
	}
	for _, life := range p.lives {
		life.judgeTheEnd(t, last[life.uid], p.rough)
	}
}

// judgeEachPoint is for a program that saw every change: what it said is true until it says something else.
func (p *playback) judgeEachPoint(t *testing.T, all []said) {
	t.Helper()
	lines, last := map[string][]said{}, map[string]string{}
	for _, s := range all {
		lines[s.AsOf] = append(lines[s.AsOf], s)
	}
	for i, h := range p.log {
		for _, s := range lines[strconv.Itoa(i+1)] {
			last[s.UID] = s.Is
		}
		if wrong := h.life.contradiction(h.at, last[h.life.uid]); wrong != "" {
			t.Error(wrong)
		}
	}
}

// judgeTheEnd: somebody who did not look before it was deleted cannot know more than that.
func (l *played) judgeTheEnd(t *testing.T, s said, missesEvents bool) {
	t.Helper()
	end := l.points[len(l.points)-1]
	want := l.outcome()
	if end.gone && (want == "" || missesEvents && s.Is == "Deleted") {
		want = "Deleted"
	}
	if s.UID == "" && missesEvents && end.gone {
		return
	}
	if s.Ended != (want != "") || s.Ended && s.Is != want {
		t.Errorf("%s: the last conclusion is %+v, want %q", l.title, s, want)
	}
	status := end.stored.Status
	counted := s.FailureRetries == status.FailureRetries && s.StartupRetries == status.StartupRetries &&
		s.Migrations == status.Migrations && s.Preemptions == status.Preemptions
	if !counted && s.Is != "Deleted" {
		t.Errorf("%s: the last conclusion is %+v, and the counts of %+v are others", l.title, s, status)
	}
}

// stepsOf are the conclusions about one AppWrapper, without those that differ only in counts.
func stepsOf(all []said, uid string) []string {
	var steps []string
	for _, s := range all {
		if s.UID == uid {
			steps = append(steps, strings.TrimSpace(s.Is+" "+s.Because))
		}
	}
	return slices.Compact(steps)
}
