// SPDX-License-Identifier: Apache-2.0

// Package rows says what is known of objects: which are refused, which differ and why. What it does not name is the
// same.
package rows

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/same/transcript"
)

// Rows is a file.
type Rows struct {
	// Same are samples that were seen to be the same. A sample that no row names is wrong.
	Same []string `json:"same"`
	// Refused has a part of the sentence with which an AppWrapper with the object is refused.
	Refused map[string]string `json:"refused"`
	// Different has the reason for which another thing happens to the wrapped object.
	Different map[string]string `json:"different"`
}

// Result is what came of an object.
type Result struct {
	Name, What    string
	Bare, Wrapped string // outcomes
	// Refusal is the sentence with which the AppWrapper was refused.
	Refusal     string
	Differences []string
	Sample      bool
}

// Read reads a file.
func Read(file string) (r Rows, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &r)
	}
	return r, err
}

// Judge says what is wrong with a result, or "". An object that does not differ any more is not wrong: nobody's
// improvement has to fail here. The table says that its row can go.
func (r Rows) Judge(of Result) string {
	if sentence, refused := r.Refused[of.Name]; refused || of.Refusal != "" {
		return judgeRefusal(sentence, of.Refusal)
	}
	_, different := r.Different[of.Name]
	switch {
	case len(of.Differences) > 0 && !different:
		return "something else happens when it is wrapped:\n- " + strings.Join(of.Differences, "\n- ")
	case of.Sample && !different && !slices.Contains(r.Same, of.Name):
		return "no row names this sample; the same happens"
	}
	return ""
}

// judgeRefusal compares a refusal with the sentence of a row. Either may be "".
func judgeRefusal(sentence, refusal string) string {
	switch {
	case sentence == "":
		return "no row says that it is refused: " + refusal
	case refusal == "":
		return fmt.Sprintf("a row says that it is refused with %q, and it is not", sentence)
	case !strings.Contains(refusal, sentence):
		return fmt.Sprintf("a row says that it is refused with %q, and it is refused with %q", sentence, refusal)
	}
	return ""
}

// Unknown are rows of objects that there are not.
func (r Rows) Unknown(names []string) (unknown []string) {
	for _, list := range []map[string]string{r.Refused, r.Different} {
		for name := range maps.Keys(list) {
			if !slices.Contains(names, name) {
				unknown = append(unknown, name)
			}
		}
	}
	for _, name := range r.Same {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// Twice are the differences of a second run that the first one had, too. If none is there again although there are
// others, those count: the object differs each time in another way. But which pod was created after which others were
// ready depends on the moment, where nobody orders them: that counts only if it is there again.
func Twice(first, second []string) (both []string) {
	for _, difference := range second {
		if slices.Contains(first, difference) {
			both = append(both, difference)
		}
	}
	if len(both) == 0 {
		return slices.DeleteFunc(slices.Clone(second), func(d string) bool { return strings.Contains(d, transcript.CreatedAfter) })
	}
	return both
}

// Table is what came of all objects.
type Table []Result

// Counts says how many objects were the same.
func (t Table) Counts() string {
	same, refused, different := 0, 0, 0
	for _, r := range t {
		switch {
		case r.Refusal != "":
			refused++
		case len(r.Differences) > 0:
			different++
		default:
			same++
		}
	}
	return fmt.Sprintf("%d objects: %d the same, %d refused, %d different", len(t), same, refused, different)
}

// Text has a line for each object: what is special about it, and how it ended.
func (t Table) Text(known Rows) string {
	var out strings.Builder
	for _, r := range t {
		fmt.Fprintf(&out, "%-32s %s\n", r.Name, r.verdict(known))
		if r.What != "" {
			fmt.Fprintf(&out, "%34s%s\n", "", r.What)
		}
	}
	return out.String() + t.Counts() + "\n"
}

func (r Result) verdict(known Rows) string {
	switch {
	case r.Refusal != "":
		return "refused: " + strings.ReplaceAll(r.Refusal, "\n", " ")
	case len(r.Differences) > 0:
		return fmt.Sprintf("DIFFERENT: %s: %s", cmp.Or(known.Different[r.Name], "no reason is known"), strings.Join(r.Differences, "; "))
	case known.Different[r.Name] != "":
		return "same: its row can go"
	case r.Bare != r.Wrapped:
		return fmt.Sprintf("same: %s, wrapped %s", r.Bare, r.Wrapped)
	}
	return "same: " + r.Bare
}
