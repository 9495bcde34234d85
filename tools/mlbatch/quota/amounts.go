// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is an amount as people write it: 64 GiB, 1,000, 35.5. Bytes are rounded down, so that what is free is there.
func Amount(name corev1.ResourceName, q resource.Quantity) string {
	number := q.AsApproximateFloat64()
	if q.IsZero() || !inBytes(name) && q.Format != resource.BinarySI {
		return grouped(number, 3)
	}
	unit, size := "GiB", float64(1<<30)
	if math.Abs(number) < size {
		unit, size = "MiB", 1<<20
	}
	return grouped(math.Floor(number/size*10)/10, 1) + " " + unit
}

func inBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// grouped writes a number with commas between thousands, and without zeros at its end.
func grouped(number float64, decimals int) string {
	whole, fraction, _ := strings.Cut(fmt.Sprintf("%.*f", decimals, math.Abs(number)), ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	if number < 0 {
		whole = "-" + whole
	}
	return whole
}
