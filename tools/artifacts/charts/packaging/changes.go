// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"regexp"
	"strings"
)

// change is an entry of the annotation artifacthub.io/changes.
type change struct {
	Kind        string `json:"kind"`
	Description string `json:"description"`
}

// link is a link of Markdown, which Artifact Hub does not render.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// changesOf returns the changes of a version in a changelog in the format of Keep a Changelog. A version
// without a section of its own has those of Unreleased.
func changesOf(changelog, version string) []change {
	section := sectionOf(changelog, version)
	if section == "" {
		section = sectionOf(changelog, "Unreleased")
	}
	var all []change
	kind := ""
	for _, line := range strings.Split(section, "\n") {
		text, item := strings.CutPrefix(line, "- ")
		heading, headed := strings.CutPrefix(line, "### ")
		switch {
		case headed:
			kind = strings.ToLower(heading)
		case item:
			all = append(all, change{kind, text})
		case strings.HasPrefix(line, "  ") && len(all) > 0:
			all[len(all)-1].Description += " " + strings.TrimSpace(line)
		}
	}
	for i := range all {
		all[i].Description = strings.NewReplacer("`", "", "**", "").Replace(link.ReplaceAllString(all[i].Description, "$1"))
	}
	return all
}

// sectionOf returns the text below the heading of a version.
func sectionOf(changelog, version string) string {
	_, text, _ := strings.Cut("\n"+changelog, "\n## "+version)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}
