// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"slices"
	"strings"
)

// colour is one on light and on dark pages.
type colour struct{ light, dark uint32 }

var (
	ink  = colour{0x1c2128, 0xe6edf3}
	grid = colour{0xd0d7de, 0x3a424c}
	// palette has the colours of series. Neighbours differ in brightness, too.
	palette = []colour{
		{0x66707b, 0x98a3af}, {0x2463b5, 0x5a9bf0}, {0xe08e0b, 0xf0b429}, {0x1f7a3d, 0x45b36b},
		{0x8a3ffc, 0xb58cff}, {0xb3362b, 0xff7b6e}, {0x0a7d8c, 0x39c5d6}, {0xa8a29a, 0x6e6a63},
	}
)

func (c colour) onLight() color.RGBA {
	return color.RGBA{R: uint8(c.light >> 16), G: uint8(c.light >> 8), B: uint8(c.light), A: 255} //nolint:gosec // the bytes are meant
}

// themed makes a picture in the light colours one that suits both sorts of pages.
func themed(svg []byte) []byte {
	style := &strings.Builder{}
	var light, dark []string
	for i, c := range append([]colour{ink, grid}, palette...) {
		name := fmt.Sprintf("--c%d", i)
		svg = bytes.ReplaceAll(svg, fmt.Appendf(nil, "#%06X", c.light), fmt.Appendf(nil, "var(%s)", name))
		light, dark = append(light, fmt.Sprintf("%s: #%06x", name, c.light)), append(dark, fmt.Sprintf("%s: #%06x", name, c.dark))
	}
	fmt.Fprintf(style, "<style>\n:root { %s }\n@media (prefers-color-scheme: dark) { :root { %s } }\n", strings.Join(light, "; "), strings.Join(dark, "; "))
	style.WriteString("text { font-family: Helvetica, Arial, 'Liberation Sans', sans-serif !important; }\n</style>\n")
	return inserted(svg, style.String())
}

// inserted has something more at the begin of a picture.
func inserted(svg []byte, more string) []byte {
	head := bytes.Index(svg, []byte("<g "))
	return slices.Concat(svg[:head], []byte(more), svg[head:])
}
