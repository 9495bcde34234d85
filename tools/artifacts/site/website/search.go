// SPDX-License-Identifier: Apache-2.0

package website

import (
	"bytes"
	"encoding/json"
)

// found is what the search knows of a section.
type found struct {
	Page    string `json:"page"`
	Heading string `json:"heading,omitempty"`
	Address string `json:"address"`
	Text    string `json:"text,omitempty"`
}

// searchIndex is a program and not JSON, because pages on a disk may not fetch files.
func (s *site) searchIndex() []byte {
	var all []found
	for _, name := range sorted(s.pages) {
		p := s.pages[name]
		for _, section := range p.sections {
			f := found{Page: p.title, Heading: section.Caption, Address: s.address(name), Text: section.text}
			if section.Caption != "" {
				f.Address += "#" + section.ID
			}
			all = append(all, f)
		}
	}
	for _, name := range sorted(s.texts) {
		all = append(all, found{Page: name, Address: s.address(name)})
	}
	var out bytes.Buffer
	out.WriteString("window.searchIndex = ")
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(all) // strings, into memory
	return out.Bytes()
}
