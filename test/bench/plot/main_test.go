// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A person looks at a picture that has changed.
func TestPictures(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("testdata has no *.json: %v", err)
	}
	for _, input := range inputs {
		got, golden := drawn(t, input), strings.TrimSuffix(input, ".json")+".svg"
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s has changed (%v): run the test with -update, and look at it", golden, err)
		}
	}
}

func drawn(t *testing.T, input string) []byte {
	t.Helper()
	in, err := os.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out := &bytes.Buffer{}
	if err := run(in, out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Every colour is one of ours, which is another on dark pages.
func TestPicturesAreWellFormedAndSuitDarkPages(t *testing.T) {
	for _, name := range []string{"beside", "stacked"} {
		picture := drawn(t, "testdata/"+name+".json")
		for decoder := xml.NewDecoder(bytes.NewReader(picture)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s is no XML: %v", name, err)
			}
			checkColours(t, name, token)
		}
		if !bytes.Contains(picture, []byte("prefers-color-scheme: dark")) {
			t.Errorf("%s has no colours for dark pages", name)
		}
	}
}

func checkColours(t *testing.T, name string, token xml.Token) {
	t.Helper()
	element, is := token.(xml.StartElement)
	if !is || element.Name.Local != "path" && element.Name.Local != "text" {
		return
	}
	for _, attribute := range element.Attr {
		if attribute.Name.Local != "style" {
			continue
		}
		if !strings.Contains(attribute.Value, "var(--c") || strings.Contains(attribute.Value, "#") {
			t.Errorf("%s: %s has the style %q", name, element.Name.Local, attribute.Value)
		}
	}
}

func TestWhatCannotBeDrawnIsRefused(t *testing.T) {
	series := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"name": "a", "values": [1]},`, n), ",")
	}
	for in, want := range map[string]string{
		`{`:                            "cannot read what to draw",
		`{"color": "red"}`:             `unknown field "color"`,
		`{"name": "x", "rows": ["r"]}`: "x: there must be rows, and 1 to 8 series",
		fmt.Sprintf(`{"name": "x", "rows": ["r"], "series": [%s]}`, series(9)):                   "x: there must be rows",
		fmt.Sprintf(`{"name": "x", "rows": ["r", "s"], "series": [%s]}`, series(1)):              "series a must have a value",
		`{"name": "x", "rows": ["r"], "series": [{"name": "a", "values": [1], "most": [1, 2]}]}`: "no spread or one, for each of 1 rows",
		`{"name": "x", "rows": ["r"], "series": [{"name": "a", "values": [1], "most": [1]}]}`:    "no spread or one",
		`{"name": "x", "rows": [], "series": [{"name": "a", "values": []}]}`:                     "there must be rows",
	} {
		if err := run(strings.NewReader(in), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}
