// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Other products have CRDs in the same groups, such as profiles.kubeflow.org.
func TestRemovingForGoodDeletesTheCRDsOfTheChartsAndNoOthers(t *testing.T) {
	var installed []string
	for _, o := range platform(t, optionalParts()) {
		if o.Kind == "CustomResourceDefinition" {
			installed = append(installed, o.Name)
		}
	}
	text := must(os.ReadFile("../docs/remove.md"))(t)
	_, after, _ := strings.Cut(string(text), "## For good")
	_, command, found := strings.Cut(after, "kubectl delete customresourcedefinitions --ignore-not-found")
	command, _, closed := strings.Cut(command, "\nkubectl ")
	if !found || !closed {
		t.Fatal("docs/remove.md does not say how to delete the CRDs")
	}
	deleted := expand(command)
	slices.Sort(installed)
	slices.Sort(deleted)
	if !slices.Equal(installed, deleted) {
		t.Errorf("the charts install\n%s\nand docs/remove.md deletes\n%s", strings.Join(installed, "\n"), strings.Join(deleted, "\n"))
	}
}

// expand does what a shell does with {a,b}.example.com.
func expand(command string) (words []string) {
	braces := regexp.MustCompile(`^\{(.*)\}(.*)$`)
	for _, word := range strings.Fields(strings.ReplaceAll(command, "\\\n", "")) {
		parts := braces.FindStringSubmatch(word)
		if parts == nil {
			words = append(words, word)
			continue
		}
		for _, name := range strings.Split(parts[1], ",") {
			words = append(words, name+parts[2])
		}
	}
	return words
}
