// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width = 25 * vg.Centimeter
	// legend is how wide the names of the series are.
	legend = 7.2 * vg.Centimeter
	// bar is how high one is, and row how high a row is besides its bars.
	bar, row = 4 * vg.Millimeter, 3 * vg.Millimeter
	// frame is how high title and axis are together.
	frame = 1.9 * vg.Centimeter
	// entry is how high a name of the legend is.
	entry = 5 * vg.Millimeter
)

// draw draws the bars of the first row on top, and the names of the series beside them.
func (c Chart) draw() ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} // as wide as Helvetica and Arial
	p, names := plot.New(), plot.NewLegend()
	p.BackgroundColor = nil
	p.Title.Text, p.X.Label.Text = c.Title, c.Unit
	c.colour(p, &names)
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = grid.onLight(), nil
	p.Add(lines)
	if err := c.addBars(p, &names); err != nil {
		return nil, err
	}
	p.NominalY(c.labels()...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(c.Rows))-0.5
	p.X.Min, p.X.Max = 0, p.X.Max*1.03
	canvas := vgsvg.New(width, c.height())
	all := draw.New(canvas)
	p.Draw(draw.Crop(all, 0, -legend, 0, 0))
	names.Draw(draw.Crop(all, width-legend+vg.Centimeter/2, 0, 0, -vg.Centimeter))
	picture := &bytes.Buffer{}
	if _, err := canvas.WriteTo(picture); err != nil {
		return nil, fmt.Errorf("cannot draw %s: %w", c.Name, err)
	}
	return inserted(themed(picture.Bytes()), c.title()), nil
}

// title is for who cannot see the picture, and the numbers for who wants to know whether it is up to date.
func (c Chart) title() string {
	numbers, _ := json.Marshal(c) // it was JSON
	return fmt.Sprintf("<title>%s</title>\n<metadata>%s</metadata>\n", html.EscapeString(c.Title), html.EscapeString(string(numbers)))
}

// colour gives all text and all lines the colour of ink.
func (c Chart) colour(p *plot.Plot, names *plot.Legend) {
	p.Title.TextStyle.Color, p.Title.Padding = ink.onLight(), 2*vg.Millimeter
	names.TextStyle.Color, names.TextStyle.Font.Size = ink.onLight(), vg.Points(10)
	names.Top, names.Left, names.Padding, names.XOffs = true, true, vg.Millimeter, 0
	names.ThumbnailWidth = entry
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Label.TextStyle.Color, axis.Tick.Color, axis.Tick.Label.Color = ink.onLight(), ink.onLight(), ink.onLight(), ink.onLight()
		axis.Label.TextStyle.Font.Size = vg.Points(10)
	}
}

// labels are those of the rows, from below, with room for wider fonts than ours.
func (c Chart) labels() []string {
	var all []string
	for _, name := range c.Rows {
		all = append(all, name+strings.Repeat(" ", 1+len(name)/8))
	}
	slices.Reverse(all)
	return all
}

// beside is how many bars a row has side by side.
func (c Chart) beside() int {
	if c.Stacked {
		return 1
	}
	return len(c.Series)
}

func (c Chart) height() vg.Length {
	rows := vg.Length(len(c.Rows)) * (row + vg.Length(c.beside())*bar)
	return frame + max(rows, vg.Length(len(c.Series))*entry)
}

// addBars adds the bars of each series, with their spread.
func (c Chart) addBars(p *plot.Plot, names *plot.Legend) error {
	var below *plotter.BarChart
	for i, s := range c.Series {
		values := slices.Clone(s.Values)
		slices.Reverse(values)
		bars, err := plotter.NewBarChart(plotter.Values(values), bar)
		if err != nil {
			return fmt.Errorf("cannot draw %s: %w", s.Name, err)
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, palette[i].onLight(), 0
		if c.Stacked && below != nil {
			bars.StackOn(below)
		}
		if !c.Stacked {
			bars.Offset = bar * vg.Length(float64(len(c.Series)-1)/2-float64(i))
		}
		below = bars
		p.Add(bars)
		names.Add(s.Name, bars)
		if len(s.Most) > 0 {
			p.Add(spread{series: s, offset: bars.Offset})
		}
	}
	return nil
}
