// SPDX-License-Identifier: Apache-2.0

// Plot draws bars: it reads the description of a picture, as JSON, and writes SVG that suits light
// and dark pages. test/bench has the same description as bench.Chart.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Chart is a picture of bars.
type Chart struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Unit    string   `json:"unit"`
	Stacked bool     `json:"stacked,omitempty"`
	Rows    []string `json:"rows"`
	Series  []Series `json:"series"`
}

// Series are the bars of one colour, one for each row, and 0 where there is none.
type Series struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	Least  []float64 `json:"least,omitempty"`
	Most   []float64 `json:"most,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "test/bench/plot:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	var c Chart
	if err := decoder.Decode(&c); err != nil {
		return fmt.Errorf("cannot read what to draw: %w", err)
	}
	if err := c.check(); err != nil {
		return err
	}
	picture, err := c.draw()
	if err == nil {
		_, err = out.Write(picture)
	}
	return err
}

// check refuses what cannot be drawn.
func (c Chart) check() error {
	if len(c.Rows) == 0 || len(c.Series) == 0 || len(c.Series) > len(palette) {
		return fmt.Errorf("%s: there must be rows, and 1 to %d series", c.Name, len(palette))
	}
	for _, s := range c.Series {
		spread := len(s.Least) == 0 && len(s.Most) == 0 || len(s.Least) == len(c.Rows) && len(s.Most) == len(c.Rows)
		if len(s.Values) != len(c.Rows) || !spread {
			return fmt.Errorf("%s: series %s must have a value, and no spread or one, for each of %d rows", c.Name, s.Name, len(c.Rows))
		}
	}
	return nil
}
