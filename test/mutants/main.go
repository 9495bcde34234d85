// SPDX-License-Identifier: Apache-2.0

// Command mutants checks that the tests would detect known defects. Each *.patch in this folder
// reintroduces one. The command applies it to a copy of the tree, where the test that the patch
// names must fail. Without the patch, the test must pass. Arguments are the names of the
// patches to try; the default is all.
//
// With -refresh it does not try the patches, but updates them to changed code.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	root := flag.String("root", ".", "root of the repository")
	anew := flag.Bool("refresh", false, "make patches anew that no longer apply, and try none")
	flag.Parse()
	do := run
	if *anew {
		do = refresh
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := do(ctx, *root, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, names []string, out io.Writer) error {
	mutants, err := load(filepath.Join(root, "test", "mutants"), names)
	if err != nil {
		return err
	}
	trees, remove, err := copies(ctx, root, min(runtime.NumCPU(), len(mutants)))
	defer remove()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	sound := map[string]string{}
	inAll(trees, packages(mutants), func(t tree, commands []string) {
		problems := t.pass(ctx, commands)
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(sound, problems)
	})
	unnoticed := 0
	inAll(trees, mutants, func(t tree, m mutant) {
		began := time.Now()
		problem := sound[m.test]
		if problem == "" {
			problem = t.notices(ctx, m)
		}
		mu.Lock()
		defer mu.Unlock()
		if problem != "" {
			unnoticed++
		}
		report(out, m, problem, time.Since(began))
	})
	if unnoticed > 0 {
		return fmt.Errorf("%d of %d mutants were not noticed", unnoticed, len(mutants))
	}
	fmt.Fprintf(out, "all %d mutants were noticed\n", len(mutants))
	return ctx.Err()
}

// inAll does all jobs, one at a time in each tree.
func inAll[Job any](trees []tree, jobs []Job, do func(tree, Job)) {
	next := make(chan Job)
	var workers sync.WaitGroup
	for _, t := range trees {
		workers.Go(func() {
			for job := range next {
				do(t, job)
			}
		})
	}
	for _, job := range jobs {
		next <- job
	}
	close(next)
	workers.Wait()
}

// packages groups the tests of the mutants by their arguments except -run, so that each test
// binary is linked only once.
func packages(mutants []mutant) [][]string {
	var all [][]string
	index, known := map[string]int{}, map[string]bool{}
	for _, m := range mutants {
		if known[m.test] {
			continue
		}
		known[m.test] = true
		key, _, _ := strings.Cut(m.test, runFlag)
		i, there := index[key]
		if !there {
			i = len(all)
			index[key], all = i, append(all, nil)
		}
		all[i] = append(all[i], m.test)
	}
	return all
}

func report(out io.Writer, m mutant, problem string, took time.Duration) {
	verdict := "noticed"
	if problem != "" {
		verdict = "PROBLEM"
	}
	fmt.Fprintf(out, "%s %4.0fs  %-9s %-42s %s\n", verdict, took.Seconds(), m.defect, m.name, m.breaks)
	if problem != "" {
		fmt.Fprintf(out, "         %s\n         %s\n", problem, m.test)
	}
}
