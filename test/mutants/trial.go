// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// notices returns why a mutant's test does not detect it as it should, or "" if it does.
func (t tree) notices(ctx context.Context, m mutant) (problem string) {
	if err := t.apply(ctx, m.file); err != nil {
		return "the patch does not apply, so run go run ./test/mutants -refresh: " + err.Error()
	}
	defer func() {
		if err := t.apply(ctx, m.file, "--reverse"); err != nil {
			problem = "cannot take the patch back: " + err.Error()
		}
	}()
	o := t.test(ctx, m.test)
	switch {
	case o.unbuilt:
		return "with the patch it does not compile, which proves nothing:\n" + o.excerpt()
	case o.failed == 0 && o.ok:
		return "it lives: the test passes all the same"
	case o.failed == 0:
		return "the run fails, but no test does:\n" + o.excerpt()
	case len(m.says) > 0 && !slices.ContainsFunc(m.says, func(one string) bool { return strings.Contains(o.text, one) }):
		return fmt.Sprintf("the test fails, but does not say %q:\n%s", m.says, o.excerpt())
	}
	return ""
}

const runFlag = " -run "

// pass returns for each test of a package why it is unusable, or "" if it passes without a
// mutant.
func (t tree) pass(ctx context.Context, commands []string) map[string]string {
	problems := map[string]string{}
	together := t.test(ctx, atOnce(commands))
	for _, command := range commands {
		if together.ok && together.hasPassed(command) {
			problems[command] = ""
			continue
		}
		problems[command] = t.passes(ctx, command)
	}
	return problems
}

// atOnce combines the commands of all tests of a package.
func atOnce(commands []string) string {
	var patterns []string
	for _, command := range commands {
		_, pattern, some := strings.Cut(command, runFlag)
		if !some {
			return command // it runs all tests
		}
		patterns = append(patterns, strings.Trim(pattern, "'"))
	}
	before, _, _ := strings.Cut(commands[0], runFlag)
	return before + runFlag + strings.Join(patterns, "|")
}

// passes returns why a test is unusable, or "" if it passes.
func (t tree) passes(ctx context.Context, test string) (problem string) {
	switch o := t.test(ctx, test); {
	case !o.ok:
		return "the test fails without the patch as well:\n" + o.excerpt()
	case !o.hasPassed(test):
		return "there is no such test"
	}
	return ""
}

// outcome is the result of a go test command.
type outcome struct {
	ok      bool     // of the whole command
	passed  []string // tests
	failed  int      // tests
	unbuilt bool
	text    string
}

// hasPassed reports whether a test that the command names has passed.
func (o outcome) hasPassed(command string) bool {
	_, pattern, _ := strings.Cut(command, runFlag)
	function, _, _ := strings.Cut(strings.Trim(pattern, "'"), "/")
	matches, err := regexp.Compile(function)
	return err == nil && slices.ContainsFunc(o.passed, matches.MatchString)
}

// excerpt is the start of the output: a failed random walk prints all its steps.
func (o outcome) excerpt() string {
	lines := strings.SplitN(o.text, "\n", 21)
	return strings.Join(lines[:min(len(lines), 20)], "\n")
}

func (t tree) test(ctx context.Context, test string) outcome {
	// No vet: a mutant may leave unused code.
	cmd := exec.CommandContext(ctx, "go", arguments(test, "-json", "-vet=off", "-count=1")...)
	cmd.Dir = string(t)
	// Random walks use the same seed every time, and are not shrunk.
	cmd.Env = append(os.Environ(), "CI=", "RAPID_SEED=1", "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=true")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	o := read(&stdout)
	o.ok = err == nil
	o.text += stderr.String()
	return o
}

// read parses the output of go test -json.
func read(stdout *bytes.Buffer) outcome {
	var o outcome
	var text strings.Builder
	for line := range bytes.Lines(stdout.Bytes()) {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(line, &event); err != nil {
			text.Write(line)
			continue
		}
		if !announces(event.Output) {
			text.WriteString(event.Output)
		}
		switch {
		case event.Action == "build-fail":
			o.unbuilt = true
		case event.Action == "fail" && event.Test != "":
			o.failed++
		case event.Action == "pass" && event.Test != "":
			o.passed = append(o.passed, event.Test)
		}
	}
	o.text = text.String()
	return o
}

// announces reports whether a line only names a test that starts or passes. Such a line does
// not count as a failure message.
func announces(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- PASS")
}
