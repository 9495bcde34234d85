// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// largest is how much an AppWrapper may have in JSON, in bytes. The API server stores no more than
// 1.5 MiB, and there has to be room for a status.
const largest = 1 << 20

func tooLong(length string) Problem {
	return problem(Refused, "the AppWrapper would have %s, and may have %d: put long variables into a ConfigMap, and name that in envFrom, and long code into a repository",
		length, largest>>10)
}

// hopeless: no AppWrapper can have these variables and this code, however often it has them. To encode
// one, only to learn that, takes a hundred MiB: of many at once, the controller would die.
func hopeless(variables map[string]v1alpha1.Text, code []v1alpha1.CodeFile) []Problem {
	length := 0
	for name, value := range variables {
		length += len(name) + encodedLength(string(value)) + strings.Count(string(value), "$") // each is doubled
	}
	for _, file := range code {
		length += len(file.Name) + encodedLength(file.Source)
	}
	if length <= largest {
		return nil
	}
	return []Problem{tooLong(fmt.Sprintf("%d KiB or more", length>>10+1))}
}

// encodedLength is the least that a text has in JSON. What is escaped in two ways counts as the shorter.
func encodedLength(text string) int {
	length := len(text)
	for _, c := range []byte(text) {
		switch {
		case strings.IndexByte("\"\\\b\f\n\r\t", c) >= 0:
			length++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			length += len(`\u003c`) - 1
		}
	}
	return length
}

// outline keeps the kinds of what an AppWrapper wraps.
func outline(planned *Planned) {
	if planned == nil {
		return
	}
	for i := range planned.AppWrapper.Spec.Components {
		template := &planned.AppWrapper.Spec.Components[i].Template
		var kind metav1.TypeMeta
		_ = json.Unmarshal(template.Raw, &kind) // a plan has encoded it
		template.Raw, _ = json.Marshal(kind)
	}
}
