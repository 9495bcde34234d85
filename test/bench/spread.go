// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
)

// Spread is the median of some values, the least and the greatest.
type Spread struct {
	Middle, Least, Most float64
	Number              int
}

// SpreadOf returns the spread of values; that of none is 0.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1], n}
}

// spreadOf is the spread of a value of some runs.
func spreadOf[T any](runs []T, value func(T) float64) Spread {
	values := make([]float64, 0, len(runs))
	for _, run := range runs {
		values = append(values, value(run))
	}
	return SpreadOf(values)
}

// String has the median and, if the values differ, the least and the greatest.
func (s Spread) String() string {
	middle, least, most := number(s.Middle), number(s.Least), number(s.Most)
	if least == most {
		return middle
	}
	return fmt.Sprintf("%s (%s–%s)", middle, least, most)
}

func number(v float64) string {
	switch {
	case v < 0:
		return "-" + number(-v)
	case v == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
