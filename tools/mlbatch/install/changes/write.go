// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"fmt"
	"io"
	"strings"
)

// most is how many fields of an object are printed. A new version of a CRD has hundreds.
const most = 20

// Write prints changes, one object or field a line.
func Write(out io.Writer, all []Change) {
	if len(all) == 0 {
		fmt.Fprintln(out, "  no object changes")
	}
	for _, c := range all {
		fmt.Fprintf(out, "  %-8s %s\n", c.What, c.Object)
		for i, f := range c.Fields {
			if i == most {
				fmt.Fprintf(out, "             and %d more fields\n", len(c.Fields)-most)
				break
			}
			fmt.Fprintf(out, "             %s: %s → %s\n", f.Path, short(f.Before), short(f.After))
		}
	}
}

// short is a value that fits on a line.
func short(value string) string {
	const width = 100
	runes := []rune(strings.ReplaceAll(value, `\n`, " "))
	switch {
	case value == "":
		return "none"
	case len(runes) > width:
		return string(runes[:width]) + "…"
	}
	return string(runes)
}
