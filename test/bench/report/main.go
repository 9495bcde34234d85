// SPDX-License-Identifier: Apache-2.0

// Report writes docs/evidence/benchmarks.md and its pictures from what was measured: docs/evidence/bench.json,
// bench-compare.json, bench-kueue.json and faults.json. What is missing there is missing on the page.
// 'make bench' and its siblings run it; test/bench/plot draws.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mlbatch/mlbatch/test/bench"
)

func main() {
	root := flag.String("root", ".", "the checkout")
	flag.Parse()
	if err := write(context.Background(), *root); err != nil {
		fmt.Fprintln(os.Stderr, "test/bench/report:", err)
		os.Exit(1)
	}
}

// write writes the page and the pictures.
func write(ctx context.Context, root string) error {
	e, err := read(filepath.Join(root, "docs", "evidence"))
	if err != nil {
		return err
	}
	page, err := e.page()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "evidence", "benchmarks.md"), page, 0o644); err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	for _, chart := range e.charts() {
		if err := draw(ctx, root, chart); err != nil {
			return err
		}
	}
	return nil
}

// draw runs the program that draws, which is in a module of its own: nobody who imports MLBatch gets
// what it needs for that.
func draw(ctx context.Context, root string, chart bench.Chart) error {
	text, err := json.Marshal(chart)
	if err != nil {
		return fmt.Errorf("cannot describe the picture %s: %w", chart.Name, err)
	}
	picture := &bytes.Buffer{}
	cmd := exec.CommandContext(ctx, "go", "run", ".")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = filepath.Join(root, "test", "bench", "plot"), bytes.NewReader(text), picture, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot draw %s: %w", chart.Name, err)
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "images", chart.Name+".svg"), picture.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write the picture %s: %w", chart.Name, err)
	}
	return nil
}
