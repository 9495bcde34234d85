// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// output is the flag -o of all commands that have one. Its first format is the default.
type output struct {
	format string
	known  []string
}

func (o *output) bind(flags *pflag.FlagSet, formats ...string) {
	o.format, o.known = formats[0], formats
	flags.VarP(o, "output", "o", o.choice())
}

// bindTable adds the flag of a command that prints an answer (docs/output.md): for people, or as JSON or YAML.
func (o *output) bindTable(flags *pflag.FlagSet, others ...string) {
	o.bind(flags, slices.Concat([]string{"table"}, others, []string{"json", "yaml"})...)
}

func (o *output) choice() string {
	last := len(o.known) - 1
	return strings.Join(o.known[:last], ", ") + " or " + o.known[last]
}

func (o *output) String() string { return o.format }

func (*output) Type() string { return "string" }

func (o *output) Set(text string) error {
	if text == "text" { // some commands called it so before all had the same formats
		text = "table"
	}
	if !slices.Contains(o.known, text) {
		return errors.New("use " + o.choice())
	}
	o.format = text
	return nil
}

func (o *output) forPrograms() bool { return o.format == "json" || o.format == "yaml" }

// stream prints one of several answers: a line of JSON, or a document of YAML.
func (o *output) stream(out io.Writer, kind string, answer any, table func() error) error {
	switch o.format {
	case "json":
		return printing.Line(out, printing.Answer(kind, answer))
	case "yaml":
		fmt.Fprintln(out, "---")
	}
	return o.print(out, kind, answer, table)
}

// print prints an answer for programs, or with table for people.
func (o *output) print(out io.Writer, kind string, answer any, table func() error) error {
	switch o.format {
	case "json":
		return printing.JSON(out, printing.Answer(kind, answer))
	case "yaml":
		return printing.YAML(out, printing.Answer(kind, answer))
	}
	return table()
}
