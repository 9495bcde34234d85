// SPDX-License-Identifier: Apache-2.0

// Command charts packages all charts of this repository, and renders install.yaml, into a
// folder. Run it from the root of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
)

func main() {
	root := flag.String("root", ".", "root of the repository")
	out := flag.String("out", "dist", "folder to write the packages into")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, out string) error {
	bundle, err := packaging.Build(ctx, root)
	if err != nil {
		return err
	}
	written, err := bundle.Write(out)
	for _, file := range written {
		fmt.Println(file)
	}
	return err
}
