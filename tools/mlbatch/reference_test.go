// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mlbatch/mlbatch/test/golden"
)

const referenceHead = `# Reference of the command

<!-- Written by go test ./tools/mlbatch -run TestTheReference -update -->

Every command with all its flags. [Everyday commands](commands.md) explains them.
`

// The page has every command and flag of the program.
func TestTheReferenceHasEveryCommand(t *testing.T) {
	root := rootCommand("")
	root.Use = "mlbatch"
	var page strings.Builder
	page.WriteString(referenceHead)
	describe(&page, root)
	golden.Compare(t, "../../docs/commands-reference.md", []byte(page.String()))
}

func describe(page *strings.Builder, cmd *cobra.Command) {
	if cmd.Runnable() {
		about := cmd.Long
		if about == "" {
			about = cmd.Short + "."
		}
		fmt.Fprintf(page, "\n## %s\n\n```\n%s\n```\n\n%s\n", cmd.CommandPath(), cmd.UseLine(), about)
		flagTable(page, cmd.LocalFlags())
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			describe(page, sub)
		}
	}
}

func flagTable(page *strings.Builder, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	page.WriteString("\n| flag | default | |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := f.DefValue
		if value != "" && value != "[]" && value != "false" {
			value = "`" + value + "`"
		} else {
			value = ""
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", name, value, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
}
