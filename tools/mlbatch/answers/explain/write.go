// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Text prints an explanation for people.
func Text(e Explanation, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", e.State)
	if len(e.Causes) == 0 {
		b.WriteString(NothingWrong(e) + ".\n")
	}
	for _, c := range e.Causes {
		b.WriteString("\n")
		writeCause(&b, c, now)
	}
	for _, unknown := range e.Unknown {
		fmt.Fprintf(&b, "\nunknown: %s\n", Printable(unknown))
	}
	return b.String()
}

// NothingWrong is what is said without a cause. Only of work that is seen to run well is nothing known to be wrong.
func NothingWrong(e Explanation) string {
	switch {
	case e.Well:
		return "Nothing is known to be wrong"
	case len(e.Unknown) > 0:
		return "Nothing that could be read says that something is wrong"
	}
	return "It is not seen to run, and nothing says why: ask again in a minute"
}

func writeCause(b *strings.Builder, c Cause, now time.Time) {
	if c.Step != "" {
		fmt.Fprintf(b, "Step %s: ", c.Step)
	}
	fmt.Fprintf(b, "%s: %s.\n", c.Code, c.Means)
	for _, n := range c.Numbers {
		fmt.Fprintf(b, "  %s\n", Printable(n.String()))
	}
	for _, who := range c.Who {
		fmt.Fprintf(b, "  %s%s\n", labelOf(who), Printable(who))
	}
	for _, e := range c.Evidence {
		fmt.Fprintf(b, "  evidence: %s\n", folded(e, c.Remedy))
	}
	if c.Since != nil {
		fmt.Fprintf(b, "  since: %s (%s)\n", c.Since.UTC().Format(time.RFC3339), now.Sub(c.Since.Time).Round(time.Second))
	}
	if c.Next != nil && c.Next.At != nil {
		fmt.Fprintf(b, "  next: %s at %s\n", Printable(c.Next.What), c.Next.At.UTC().Format(time.RFC3339))
	} else if c.Next != nil {
		fmt.Fprintf(b, "  next: %s\n", Printable(c.Next.What))
	}
	fmt.Fprintf(b, "  fix: %s\n", c.Remedy)
}

// labelOf is for sentences about whoever has the quota. Others, as about the position in the queue, need none.
func labelOf(who string) string {
	if strings.HasPrefix(who, "ClusterQueue ") || strings.HasPrefix(who, "work of ") {
		return "holders: "
	}
	return ""
}

// String says what is missing.
func (n Number) String() string {
	if n.Most != "" {
		return fmt.Sprintf("it requests %s of %s in flavor %s, and its queue can have at most %s", n.Requested, n.Resource, n.Flavor, n.Most)
	}
	said := fmt.Sprintf("%s more of %s has to be free in flavor %s", n.Missing, n.Resource, n.Flavor)
	if n.Own != "" && n.Used != "" {
		said += fmt.Sprintf("; its queue uses %s, and %s is its own", n.Used, n.Own)
	}
	return said
}

// String is the evidence in one line.
func (e Evidence) String() string {
	if e.Field == "" {
		return e.Object + " " + e.Value
	}
	return e.Object + ", " + e.Field + ": " + e.Value
}

// Printable makes one line of a text that others wrote, without what a terminal would obey.
func Printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
