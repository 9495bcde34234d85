// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// bash runs a bash command line of KubeRay, of the one who submits a job, or a file.
func bash(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 1 && !strings.HasPrefix(args[0], "-") {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		return script(ctx, string(text), out)
	}
	if len(args) < 2 || !strings.HasPrefix(args[0], "-") || !strings.Contains(args[0], "c") {
		return fmt.Errorf("unsupported bash arguments %q\n\n%s", args, usage)
	}
	options := []string{}
	if strings.Contains(args[0], "e") {
		options = append(options, "-e")
	}
	return script(ctx, args[len(args)-1], out, options...)
}

// script runs a shell script.
func script(ctx context.Context, text string, out io.Writer, options ...string) error {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return fmt.Errorf("cannot read the script: %w", err)
	}
	shell, err := interp.New(
		interp.StdIO(nil, out, out),
		interp.Params(options...),
		interp.CallHandler(withoutLimits),
		interp.ExecHandlers(ourselves),
	)
	if err != nil {
		return err
	}
	return shell.Run(ctx, file)
}

// withoutLimits ignores ulimit, the only builtin of KubeRay's scripts that the shell lacks.
func withoutLimits(_ context.Context, args []string) ([]string, error) {
	if args[0] == "ulimit" {
		return []string{"true"}, nil
	}
	return args, nil
}

// ourselves runs ray and bash in this process, so that SIGTERM ends all.
func ourselves(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		run := map[string]func(context.Context, []string, io.Writer) error{"ray": ray, "bash": bash}[args[0]]
		if run == nil {
			return next(ctx, args)
		}
		shell := interp.HandlerCtx(ctx)
		err := run(ctx, args[1:], shell.Stdout)
		var status interp.ExitStatus
		if err == nil || errors.As(err, &status) {
			return err
		}
		fmt.Fprintf(shell.Stderr, "%s: %v\n", args[0], err)
		return interp.ExitStatus(1)
	}
}
