// SPDX-License-Identifier: Apache-2.0

package commandline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/test/wording"
)

var errKept = errors.New("interrupted in step 2 of 3")

// program has the subcommand "submit", which ends as do says.
func program(do func(cmd *cobra.Command, args []string) error) Program {
	return Program{Name: "program", Interrupted: []error{errors.New("another"), errKept}, Root: func(version string) *cobra.Command {
		root := &cobra.Command{Use: "overwritten", Short: "Is the program of version " + version}
		root.AddCommand(&cobra.Command{Use: "submit", RunE: do})
		return root
	}}
}

func succeed(*cobra.Command, []string) error { return nil }

func run(ctx context.Context, p Program, args ...string) (out, progress string, err error) {
	var o, e bytes.Buffer
	err = p.Run(ctx, args, &o, &e)
	return o.String(), e.String(), err
}

func TestErrorsAreOneSentence(t *testing.T) {
	for line, want := range map[string]string{
		"sumbit":         `unknown command "sumbit" for "program": see 'program --help'`,
		"help sumbit":    `unknown command "sumbit" for "program": see 'program help --help'`,
		"--titel=x":      "unknown flag: --titel: see 'program --help'",
		"submit --titel": "unknown flag: --titel: see 'program submit --help'",
		"submit -x":      "unknown shorthand flag: 'x' in -x: see 'program submit --help'",
		"submit now":     "cannot submit now",
	} {
		t.Run(line, func(t *testing.T) {
			p := program(func(_ *cobra.Command, args []string) error { return fmt.Errorf("cannot submit %s", args[0]) })
			out, progress, err := run(t.Context(), p, strings.Fields(line)...)
			wording.OneSentence(t, out+progress, err, want)
			if err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--version":     "program version " + versions.Version + "\n",
		"":              "Is the program of version " + versions.Version + "\n\nUsage:\n  program [command]\n",
		"submit --help": "Usage:\n  program submit [flags]\n",
		"help submit":   "Usage:\n  program submit [flags]\n",
	} {
		t.Run(line, func(t *testing.T) {
			out, progress, err := run(t.Context(), program(succeed), strings.Fields(line)...)
			if err != nil || !strings.HasPrefix(out, want) || progress != "" {
				t.Errorf("got %q, %q, %v, want %q", out, progress, err, want)
			}
		})
	}
}

func TestResultsAndProgressAreApart(t *testing.T) {
	out, progress, err := run(t.Context(), program(func(cmd *cobra.Command, _ []string) error {
		fmt.Fprint(cmd.OutOrStdout(), "result")
		fmt.Fprint(cmd.ErrOrStderr(), "progress")
		return nil
	}), "submit")
	if err != nil || out != "result" || progress != "progress" {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
}

func TestAnInterruptedCommandSaysOnlyThat(t *testing.T) {
	for name, c := range map[string]struct {
		err                error
		whole, interrupted string
	}{
		"a consequence":                {context.Canceled, "context canceled", "interrupted; run the command again"},
		"a sentence of its own":        {fmt.Errorf("%w: resume", errKept), "interrupted in step 2 of 3: resume", "interrupted in step 2 of 3: resume"},
		"a child that said it":         {fmt.Errorf("child: %w", ExitStatus(3)), "child: exit status 3", "child: exit status 3"},
		"a child that said it, with 0": {ExitStatus(0), "exit status 0", "exit status 0"},
		"it was done by then":          {nil, "<nil>", "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			p := program(func(cmd *cobra.Command, _ []string) error {
				if !errors.Is(cmd.Context().Err(), ctx.Err()) {
					t.Error("the subcommand does not hear of the interrupt")
				}
				return c.err
			})
			if _, _, err := run(ctx, p, "submit"); fmt.Sprint(err) != c.whole {
				t.Errorf("got %v, want %s", err, c.whole)
			}
			interrupt()
			if _, _, err := run(ctx, p, "submit"); fmt.Sprint(err) != c.interrupted {
				t.Errorf("interrupted: got %v, want %s", err, c.interrupted)
			}
		})
	}
}

// asProgram makes this test binary the program.
const asProgram = "COMMANDLINE_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		program(endAs).Main()
	}
	os.Exit(m.Run())
}

// endAs ends as its argument says.
func endAs(cmd *cobra.Command, args []string) error {
	switch args[0] {
	case "success":
		return nil
	case "status":
		return fmt.Errorf("child: %w", ExitStatus(3))
	case "deaf": // until its standard input ends
		fmt.Fprintln(cmd.OutOrStdout(), "started")
		<-cmd.Context().Done()
		fmt.Fprintln(cmd.OutOrStdout(), "interrupted")
		_, err := io.Copy(io.Discard, cmd.InOrStdin())
		return err
	}
	return fmt.Errorf("cannot submit %s", args[0])
}

// process is the program in a process of its own.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(patience.Short))
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

func TestTheProcessEndsWithASentenceAndAStatus(t *testing.T) {
	for line, want := range map[string]struct {
		said   string
		status int
	}{
		"submit success": {"", 0},
		"submit status":  {"", 3},
		"submit nothing": {"program: cannot submit nothing\n", 1},
		// What others have written may be in an error. A terminal must not obey it.
		"submit \x1b[2Jé\u009b2J\u202e": {"program: cannot submit  [2Jé 2J \n", 1},
		"sumbit":                        {"program: unknown command \"sumbit\" for \"program\": see 'program --help'\n", 1},
	} {
		t.Run(line, func(t *testing.T) {
			cmd := process(t, strings.Fields(line)...)
			var out, said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			_ = cmd.Run() // the status tells more
			if status := cmd.ProcessState.ExitCode(); status != want.status || said.String() != want.said || out.Len() > 0 {
				t.Errorf("got status %d, %q and %q", status, said.String(), out.String())
			}
		})
	}
}

func TestASecondInterruptKillsTheProcess(t *testing.T) {
	for _, first := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(first.String(), func(t *testing.T) {
			cmd := process(t, "submit", "deaf")
			if _, err := cmd.StdinPipe(); err != nil { // open until the end
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for _, want := range []string{"started", "interrupted"} {
				if !lines.Scan() || lines.Text() != want {
					t.Errorf("got %q, want %q", lines.Text(), want)
				}
				if want == "started" {
					_ = cmd.Process.Signal(first)
				}
			}
			interruptUntil(t, cmd)
		})
	}
}

// interruptUntil interrupts the process until it ends: a signal shortly after the first one may still be
// taken for a part of it.
func interruptUntil(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the state tells more
	}()
	for done := false; !done; {
		select {
		case <-ended:
			done = true
		case <-time.After(time.Millisecond):
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != os.Interrupt {
		t.Errorf("it ends with %v and not by the interrupt", cmd.ProcessState)
	}
}

// kubectl runs a program kubectl-NAME for 'kubectl NAME'.
func TestHelpOfAPluginOfKubectl(t *testing.T) {
	for calledAs, want := range map[string]string{"kubectl-program": "kubectl program submit", "kubectl-program.exe": "kubectl program submit", "program": "  program submit", "other": "  program submit"} {
		p := program(succeed)
		p.CalledAs = calledAs
		out, _, err := run(t.Context(), p, "submit", "--help")
		if err != nil || !strings.Contains(out, want+" [flags]") {
			t.Errorf("%s: got %s, %v", calledAs, out, err)
		}
		if _, _, err := run(t.Context(), p, "sumbit"); err == nil || !strings.HasSuffix(err.Error(), "see '"+strings.TrimSuffix(strings.TrimSpace(want), " submit")+" --help'") {
			t.Errorf("%s: got %v", calledAs, err)
		}
	}
}
