// SPDX-License-Identifier: Apache-2.0

// Package commandline answers: how does a command of MLBatch begin, and how does it end?
//
//   - Results go to standard output, progress and errors to standard error.
//   - An error is one sentence, which begins with the name of the program. The exit status is 1.
//   - The first interrupt cancels the context: the command stops, and says how to resume. The second one
//     kills the program.
//
// The package knows no subcommand.
package commandline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/setup"
)

// Program is a command that users run, such as mlbatch.
type Program struct {
	Name string
	// CalledAs is the name of the file that runs. If it is kubectl-NAME, help says 'kubectl NAME'. Main sets it.
	CalledAs string
	// Root builds the root command for this version of MLBatch. Its name, version and settings for errors
	// follow from the program.
	Root func(version string) *cobra.Command
	// Interrupted are errors that say what an interrupt left undone. Any other error of an interrupted
	// command is only a consequence, and is not shown.
	Interrupted []error
}

// ExitStatus is the error of a subcommand that has printed why it does not end with status 0, or whose own
// child process has. The program ends with this status, and prints nothing.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Main runs the command line of this process, and ends the process.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt kills the program
	p.CalledAs = filepath.Base(os.Args[0])
	err := p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if status := ExitStatus(0); errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.Name, strings.Map(printable, err.Error()))
		os.Exit(1)
	}
	os.Exit(0)
}

// printable replaces what a terminal would obey: an error may have the words of others.
func printable(r rune) rune {
	if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// Run runs one command line. It writes results to out, and progress to progress. It does not print its error.
func (p Program) Run(ctx context.Context, args []string, out, progress io.Writer) error {
	versions, err := setup.Load()
	if err != nil {
		return err
	}
	root := p.Root(versions.Version)
	root.Use, root.Version = p.Name, versions.Version
	if strings.TrimSuffix(p.CalledAs, ".exe") == "kubectl-"+p.Name {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + p.Name}
	}
	root.SilenceErrors, root.SilenceUsage, root.DisableSuggestions = true, true, true // an error is one sentence
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(progress)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	sayWhatToDo(root)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), "unknown "): // cobra: command or flag
		return fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())
	case strings.HasPrefix(err.Error(), "invalid argument "): // pflag
		return errors.New(inWords(err.Error()))
	case ctx.Err() != nil && !p.explains(err):
		return errors.New("interrupted; run the command again")
	}
	return err
}

// sayWhatToDo completes commands that only have subcommands, and help: cobra prints their help, and calls any word a
// success.
func sayWhatToDo(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = func(cmd *cobra.Command, args []string) error { _, _, err := cmd.Root().Find(args); return err }
		}
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return fmt.Errorf("say what to do: see '%s --help'", cmd.CommandPath())
			}
		}
		sayWhatToDo(cmd)
	}
}

// mistyped are the words of Go's parsers for values of flags, and ours.
var mistyped = []struct {
	theirs *regexp.Regexp
	ours   string
}{
	{regexp.MustCompile(`strconv\.ParseBool: .*$`), "write true or false"},
	{regexp.MustCompile(`strconv\.Parse\w+: .*: value out of range$`), "this number is too large"},
	{regexp.MustCompile(`strconv\.Parse\w+: .*$`), "write a whole number"},
	{regexp.MustCompile(`time: .*$`), "write a time such as 30s, 5m or 1h"},
}

func inWords(text string) string {
	for _, m := range mistyped {
		text = m.theirs.ReplaceAllString(text, m.ours)
	}
	return text
}

// explains reports whether an error of an interrupted command says enough.
func (p Program) explains(err error) bool {
	status := ExitStatus(0)
	return errors.As(err, &status) || slices.ContainsFunc(p.Interrupted, func(target error) bool { return errors.Is(err, target) })
}
