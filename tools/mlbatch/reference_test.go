// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const referenceHead = "# Reference of the command\n\nEvery command with all its flags, as `mlbatch COMMAND --help` prints them. " +
	"[Commands](commands.md) has the everyday\nones.\n"

// Every command and flag says what it does. 'make site' lets the test write that into PAGES, as a page of the website.
func TestTheReferenceHasEveryCommand(t *testing.T) {
	root := rootCommand("")
	root.Use = "mlbatch"
	var page strings.Builder
	page.WriteString(referenceHead)
	describe(t, &page, root)
	if got := page.String(); !strings.Contains(got, "\n## mlbatch why\n") || !strings.Contains(got, "| `-o`, `--output` | `table` |") {
		t.Errorf("the reference is %s", got)
	}
	if folder := os.Getenv("PAGES"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, "commands-reference.md"), []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func describe(t *testing.T, page *strings.Builder, cmd *cobra.Command) {
	if cmd.Runnable() || cmd.HasParent() && cmd.HasSubCommands() {
		about := cmd.Long
		if about == "" {
			about = cmd.Short + "."
		}
		if cmd.Short == "" {
			t.Errorf("%s does not say what it does", cmd.CommandPath())
		}
		fmt.Fprintf(page, "\n## %s\n\n```\n%s\n```\n\n%s\n", cmd.CommandPath(), cmd.UseLine(), about)
		flagTable(t, page, cmd)
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			describe(t, page, sub)
		}
	}
}

func flagTable(t *testing.T, page *strings.Builder, cmd *cobra.Command) {
	flags := cmd.LocalFlags()
	if !flags.HasAvailableFlags() {
		return
	}
	page.WriteString("\n| flag | default | |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if f.Usage == "" {
			t.Errorf("%s --%s does not say what it does", cmd.CommandPath(), f.Name)
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
