// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"fmt"
	"strings"
)

// In Kueue's CRD templates all template actions stand above this line, and the
// rest is plain YAML.
const endOfActions = "\n  group: "

// The annotations of Kueue's CRD templates, to which those that keep it are added.
const annotations = "\n  annotations:\n"

// slimCRDTemplate does for a CRD that is a Helm template what slimCRD does for
// a plain one. It leaves the head with its template actions as it is.
func slimCRDTemplate(text []byte) ([]byte, error) {
	at := bytes.Index(text, []byte(endOfActions))
	if at < 0 || bytes.Contains(text[at:], []byte("{{")) {
		return nil, fmt.Errorf("is not laid out as packaging expects: template actions only before %q", strings.TrimSpace(endOfActions))
	}
	head, tail := text[:at+1], text[at+1:]
	if bytes.Count(head, []byte(annotations)) != 1 {
		return nil, fmt.Errorf("is not laid out as packaging expects: one block of annotations")
	}
	kept := annotations
	for _, name := range sortedKeys(keepAnnotations) {
		kept += fmt.Sprintf("    %s: %s\n", name, keepAnnotations[name])
	}
	head = bytes.Replace(head, []byte(annotations), []byte(kept), 1)
	fields, err := slimFields(tail)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(bytes.Clone(head))
	for _, name := range sortedKeys(fields) {
		fmt.Fprintf(out, "  %s: %s\n", name, fields[name])
	}
	return out.Bytes(), nil
}
