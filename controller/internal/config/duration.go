// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// Duration is written for people ("90s", "1h30m") or, as in existing files,
// as a whole number of nanoseconds.
type Duration struct {
	time.Duration
}

// UnmarshalJSON reports a bad value as a type error because the decoder adds
// the path of the field to those, and to no others.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if nanoseconds, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		d.Duration = time.Duration(nanoseconds)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		if parsed, err := time.ParseDuration(text); err == nil {
			d.Duration = parsed
			return nil
		}
	}
	return &json.UnmarshalTypeError{Value: string(data), Type: reflect.TypeFor[Duration]()}
}

// MarshalJSON writes the form for people.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}
