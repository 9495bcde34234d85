// SPDX-License-Identifier: Apache-2.0

package printing

import "encoding/json"

// APIVersion is the version of all answers for programs. docs/output.md promises their fields.
const APIVersion = "mlbatch.dev/v1"

// Answer is what programs get of a command: what has the field items, below its kind.
func Answer(kind string, answer any) any { return document{kind, answer} }

// Items is an answer that has nothing beside its items.
type Items[T any] struct {
	Items []T `json:"items"`
}

type document struct {
	kind   string
	answer any
}

// MarshalJSON writes the fields of the answer after apiVersion and kind.
func (d document) MarshalJSON() ([]byte, error) {
	fields, err := json.Marshal(d.answer)
	if err != nil {
		return nil, err
	}
	head := `{"apiVersion":"` + APIVersion + `","kind":"` + d.kind + `",`
	return append([]byte(head), fields[1:]...), nil
}
