// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/markdown"
)

// Each line with mlbatch in the documentation is one that the command takes.
func TestTheCommandsInTheDocumentationExist(t *testing.T) {
	found := 0
	for _, page := range markdown.Pages(t, "../..") {
		for _, line := range page.Shell {
			for _, args := range calls(line) {
				found++
				if err := accepted(args); err != nil {
					t.Errorf("%s: mlbatch %s: %v", page.File, strings.Join(args, " "), err)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d commands were found", found)
	}
}

func TestCallsAreFoundInALine(t *testing.T) {
	for line, want := range map[string]string{
		"mlbatch list -A   # of all":                   "list -A",
		`mlbatch pack a.yaml | kubectl apply -f -`:     "pack a.yaml",
		"cat a | bin/mlbatch pack --queue 'a b' -":     "pack --queue a b -",
		"source <(mlbatch completion bash)":            "completion bash",
		"make build && kubectl mlbatch top > file.txt": "top",
		"ls bin/mlbatch-linux":                         "",
	} {
		var got []string
		for _, args := range calls(line) {
			got = append(got, strings.Join(args, " "))
		}
		if strings.Join(got, ";") != want {
			t.Errorf("%s: got %q", line, got)
		}
	}
}

var (
	separators = regexp.MustCompile(`\|\||&&|[|;()<>]`)
	words      = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
	theProgram = regexp.MustCompile(`^(?:\S+=\S* )*(?:kubectl |bin/|\./)?mlbatch( |$)`)
)

// calls are the arguments of mlbatch in a line of a shell.
func calls(line string) (all [][]string) {
	line, _, _ = strings.Cut(line, " #")
	for _, part := range separators.Split(line, -1) {
		part = strings.TrimSpace(part)
		head := theProgram.FindString(part)
		if head == "" {
			continue
		}
		args := []string{}
		for _, word := range words.FindAllString(part[len(head):], -1) {
			args = append(args, strings.Trim(word, `'"`))
		}
		all = append(all, args)
	}
	return all
}

// accepted is an error unless the command, its flags and their values exist.
func accepted(args []string) error {
	root := rootCommand("")
	root.Use, root.Version = "mlbatch", "1"
	root.InitDefaultCompletionCmd(args...)
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.DisableFlagParsing {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if help, _ := cmd.Flags().GetBool("help"); help || !cmd.Runnable() {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
