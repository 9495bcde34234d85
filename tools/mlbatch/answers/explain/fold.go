// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"regexp"
	"strings"
)

// longest is how many characters of a value people read. Programs get all.
const longest = 300

// left is for what people do not read.
const left = "[…]"

// wrappings are what components add to each message of a sort, whatever happened.
var wrappings = []*regexp.Regexp{
	// kube-scheduler, after why no node takes a pod: that less important pods are not in the way either.
	regexp.MustCompile(`(no new claims to deallocate, )?preemption: 0/\d+ nodes are available: [^.]*\.`),
	// containerd and runc, before why they cannot start a program.
	regexp.MustCompile(`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process:( error during container init:)?`),
	// The kubelet, before what containerd says.
	regexp.MustCompile(`rpc error: code = \w+ desc =`),
	// Kueue, of the work that has the quota now.
	regexp.MustCompile(`\(UID: \S+, JobUID: \S+\)`),
}

// folded is evidence as people read it: the part of a long message that matters. Whole stay what a program wrote last,
// but for its beginning, and what the remedy sends people to read.
func folded(e Evidence, remedy string) string {
	text := Printable(e.Value)
	toRead := strings.Contains(remedy, "message")
	if !toRead && e.Field != lastLines {
		for _, wrapping := range wrappings {
			text = wrapping.ReplaceAllString(text, left)
		}
	}
	value := []rune(text)
	switch {
	case len(value) <= longest || toRead:
		e.Value = text
	case e.Field == lastLines:
		e.Value = left + " " + string(value[len(value)-longest:])
	default:
		e.Value = string(value[:longest]) + " " + left + " (-o json has all)"
	}
	return Printable(e.String())
}
