// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// longestAmount has room for many more digits than any honest amount.
const longestAmount = 40

var (
	// anAmount is what Kubernetes may take for a quantity.
	anAmount = regexp.MustCompile(`^[+-]?[0-9.]+[eEinumkKMGTP]*[+-]?[0-9]*$`)
	// hugeExponent is one of at least three digits.
	hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3,}$`)
)

// holdAmounts are the fields with quantities, or with objects that have some: those of a pod, and
// those that operators add.
var holdAmounts = map[string]bool{
	"requests": true, "limits": true, "overhead": true, "sizeLimit": true, "divisor": true,
	"resources": true, "minResources": true, "storage": true, "capacity": true,
}

// checkAmounts refuses quantities that keep every program of the cluster busy without end: to
// decode 1e-2000000000, or to ask for the value of 1e2000000000, takes all its digits. So it comes
// before anything is decoded into typed objects.
func checkAmounts(object map[string]any) error {
	return checkAmountsOf(object, nil, false)
}

func checkAmountsOf(value any, path *field.Path, amounts bool) error {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := checkAmountsOf(v[key], path.Child(key), amounts || holdAmounts[key]); err != nil {
				return err
			}
		}
	case []any:
		for i := range v {
			if err := checkAmountsOf(v[i], path.Index(i), amounts); err != nil {
				return err
			}
		}
	case string:
		if amounts {
			return checkAmount(v, path)
		}
	}
	return nil
}

func checkAmount(text string, path *field.Path) error {
	amount := strings.TrimSpace(text) // as Kubernetes does before it parses
	if (len(amount) <= longestAmount && !hugeExponent.MatchString(amount)) || !anAmount.MatchString(amount) {
		return nil
	}
	return fmt.Errorf("%s: an amount has at most %d characters and 2 digits in its exponent, such as 8, 500m, 1.5Gi or 1e3", path, longestAmount)
}
