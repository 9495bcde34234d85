// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// spread draws a line from the least to the greatest value over each bar, beside its neighbours.
type spread struct {
	series Series
	offset vg.Length
}

// Plot draws the lines.
func (s spread) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	line := draw.LineStyle{Color: ink.onLight(), Width: vg.Points(0.8)}
	last := len(s.series.Values) - 1
	for i := range s.series.Values {
		least, most := toX(s.series.Least[i]), toX(s.series.Most[i])
		if least == most {
			continue
		}
		y := toY(float64(last-i)) + s.offset
		c.StrokeLine2(line, least, y, most, y)
		for _, x := range []vg.Length{least, most} {
			c.StrokeLine2(line, x, y-vg.Millimeter, x, y+vg.Millimeter)
		}
	}
}

// DataRange lets the axis be long enough.
func (s spread) DataRange() (xmin, xmax, ymin, ymax float64) {
	return 0, slices.Max(s.series.Most), 0, float64(len(s.series.Values) - 1)
}
