// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// bash runs a bash command line of KubeRay.
func bash(ctx context.Context, args []string) error {
	if len(args) < 2 || !strings.HasPrefix(args[0], "-") || !strings.Contains(args[0], "c") {
		return fmt.Errorf("unsupported bash arguments %q\n\n%s", args, usage)
	}
	options := []string{}
	if strings.Contains(args[0], "e") {
		options = append(options, "-e")
	}
	return script(ctx, args[len(args)-1], os.Stdout, options...)
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

// ourselves runs ray in this process, so that SIGTERM ends both.
func ourselves(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		if args[0] != "ray" {
			return next(ctx, args)
		}
		if err := ray(ctx, args[1:]); err != nil {
			fmt.Fprintln(interp.HandlerCtx(ctx).Stderr, "ray:", err)
			return interp.ExitStatus(1)
		}
		return nil
	}
}
