// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is a patch that reintroduces a defect. The lines before the first diff describe it.
type mutant struct {
	file, name string
	defect     string   // the number in the list of known defects, or the broken rule
	breaks     string   // what a user would see, as a sentence
	test       string   // the command of the test that must fail
	says       []string // its output must contain one of these; if there are none, failing is enough
}

// load reads the patches of a folder, or only those with the given names.
func load(folder string, names []string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".patch")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := parse(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		m.file, m.name = file, name
		mutants = append(mutants, m)
	}
	if len(mutants) == 0 || len(names) > len(mutants) {
		return nil, fmt.Errorf("%s has no mutant of that name", folder)
	}
	return mutants, nil
}

func parse(patch string) (mutant, error) {
	head, _, ok := strings.Cut(patch, "diff --git ")
	if !ok {
		return mutant{}, fmt.Errorf("it changes nothing: there is no line that begins with diff --git")
	}
	lines := map[string][]string{"Defect": nil, "Breaks": nil, "Test": nil, "Says": nil}
	for line := range strings.Lines(head) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, _ := strings.Cut(line, ": ")
		if _, known := lines[key]; !known || value == "" {
			return mutant{}, fmt.Errorf("the line %q is none of Defect, Breaks, Test and Says", line)
		}
		lines[key] = append(lines[key], value)
	}
	if len(lines["Defect"]) != 1 || len(lines["Breaks"]) != 1 || len(lines["Test"]) != 1 || !strings.HasPrefix(lines["Test"][0], goTest) {
		return mutant{}, fmt.Errorf("its head needs one line each of Defect, Breaks and Test, and the test begins with %q", goTest)
	}
	return mutant{defect: lines["Defect"][0], breaks: lines["Breaks"][0], test: lines["Test"][0], says: lines["Says"]}, nil
}

const goTest = "go test "

// arguments returns the arguments of go for a test, with additional flags. The test may quote
// with single quotes, and may start with -C and the folder of another module.
func arguments(test string, flags ...string) []string {
	args := strings.Fields(strings.TrimPrefix(test, goTest))
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
	}
	first := 0
	if len(args) > 1 && args[0] == "-C" {
		first = 2
	}
	return slices.Concat([]string{"test"}, args[:first], flags, args[first:])
}
