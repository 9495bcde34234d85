// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// CheckDeclared compares the pod sets that a component declares with those that its kind
// implies. A component may declare none, and if the kind implies none it may declare any.
func CheckDeclared(declared, inferred []v1beta2.AppWrapperPodSet) error {
	if len(declared) == 0 {
		return nil
	}
	counts := make(map[string]int32, len(declared))
	for _, p := range declared {
		if _, twice := counts[p.Path]; twice {
			return fmt.Errorf("two pod sets have the path %q", p.Path)
		}
		counts[p.Path] = p.Count()
	}
	if len(inferred) == 0 {
		return nil
	}
	if len(declared) != len(inferred) {
		return fmt.Errorf("%d pod sets are declared but the template has %d", len(declared), len(inferred))
	}
	var errs []error
	for _, p := range inferred {
		if err := declaredAs(counts, p); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func declaredAs(counts map[string]int32, inferred v1beta2.AppWrapperPodSet) error {
	count, ok := counts[inferred.Path]
	if !ok {
		return fmt.Errorf("the pod set at %q is not declared", inferred.Path)
	}
	if count != inferred.Count() {
		return fmt.Errorf("the pod set at %q is declared with %d replicas but the template has %d", inferred.Path, count, inferred.Count())
	}
	return nil
}
