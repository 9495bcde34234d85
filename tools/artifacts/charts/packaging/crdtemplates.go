// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"fmt"
	"strings"
)

// In Kueue's CRD templates, all template actions are above this line. The rest is plain YAML.
const endOfActions = "\n  group: "

// The annotations in Kueue's CRD templates. slimCRDTemplate adds keepAnnotations after this line.
const annotations = "\n  annotations:\n"

// slimCRDTemplate is slimCRD for a CRD that is a Helm template. Except for the annotations, it
// does not change the part with template actions.
func slimCRDTemplate(text []byte) ([]byte, error) {
	at := bytes.Index(text, []byte(endOfActions))
	if at < 0 || bytes.Contains(text[at:], []byte("{{")) {
		return nil, fmt.Errorf("has an unexpected layout: there must be a line %q, and no template action after it", strings.TrimSpace(endOfActions))
	}
	head, tail := text[:at+1], text[at+1:]
	if bytes.Count(head, []byte(annotations)) != 1 {
		return nil, fmt.Errorf("has an unexpected layout: there must be exactly one block of annotations")
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
