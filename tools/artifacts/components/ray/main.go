// SPDX-License-Identifier: Apache-2.0

// Command ray stands in for Ray in end-to-end tests: it has the features that KubeRay uses. The
// same binary is ray and bash. It is its own module because of the shell's dependencies.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/interp"
)

const usage = `ray start --head ...          serve the dashboard until SIGTERM
ray start ...                 until SIGTERM
ray job submit --address URL --submission-id ID ... -- COMMAND
ray job status --address URL ID
ray job logs --address URL --follow ID
bash -c [-e] [--] SCRIPT
bash FILE
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	run := ray
	if filepath.Base(os.Args[0]) == "bash" {
		run = bash
	}
	err := run(ctx, os.Args[1:], os.Stdout)
	var status interp.ExitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status)) //nolint:gocritic // Nothing is left to stop.
	case err != nil:
		fmt.Fprintf(os.Stderr, "ray: %v\n", err)
		os.Exit(1)
	}
}

// ray runs a ray command line.
func ray(ctx context.Context, args []string, out io.Writer) error {
	command := strings.Join(args[:min(2, len(args))], " ")
	flags, rest := parse(args[min(2, len(args)):])
	switch {
	case command == "start --head":
		return serve(ctx, ":8265", ":8000")
	case strings.HasPrefix(command, "start"):
		<-ctx.Done()
		return nil
	case command == "job submit":
		return submit(ctx, flags["--address"], flags["--submission-id"], strings.Join(rest, " "))
	case command == "job status" && len(rest) == 1:
		j, err := look(ctx, flags["--address"], rest[0])
		if err == nil {
			fmt.Fprint(out, j)
		}
		return err
	case command == "job logs" && len(rest) == 1:
		return follow(ctx, flags["--address"], rest[0], out)
	}
	return fmt.Errorf("unknown command %q\n\n%s", args, usage)
}

// parse splits flags from the other arguments. Flags have a value, except --no-wait and --follow.
func parse(args []string) (flags map[string]string, rest []string) {
	flags = map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, whole := strings.Cut(args[i], "=")
		switch {
		case args[i] == "--":
			return flags, append(rest, args[i+1:]...)
		case name == "--no-wait", name == "--follow":
		case strings.HasPrefix(name, "--") && whole:
			flags[name] = value
		case strings.HasPrefix(name, "--") && i+1 < len(args):
			i++
			flags[name] = args[i]
		default:
			rest = append(rest, args[i])
		}
	}
	return flags, rest
}
