// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The help has a heading for each command, and each command that runs has examples, which it can read.
func TestTheHelpHasGroupsAndExamples(t *testing.T) {
	found := 0
	for _, cmd := range rootCommand("1").Commands() {
		if cmd.GroupID == "" {
			t.Errorf("%s is in no group", cmd.CommandPath())
		}
	}
	for _, cmd := range runnable(rootCommand("1")) {
		found++
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			call, _, _ := strings.Cut(line, " && ")
			if words := strings.Fields(call); cmd.Example != "" && !reads(cmd, words) {
				t.Errorf("%s cannot read its example %q", cmd.CommandPath(), line)
			}
		}
	}
	if found < 25 {
		t.Errorf("%d commands are run", found)
	}
}

// reads reports whether words call a command with flags that it has.
func reads(cmd *cobra.Command, words []string) bool {
	if len(words) < 2 || words[0] != "mlbatch" {
		return false
	}
	meant, args, err := rootCommand("1").Find(words[1:])
	return err == nil && meant.CommandPath() == cmd.CommandPath() && (meant.DisableFlagParsing || meant.ParseFlags(args) == nil)
}

// runnable are the commands that do something by themselves.
func runnable(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.Hidden {
			continue
		}
		if sub.HasSubCommands() {
			all = append(all, runnable(sub)...)
		} else {
			all = append(all, sub)
		}
	}
	return all
}
