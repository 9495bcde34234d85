// SPDX-License-Identifier: Apache-2.0

package admissionrules_test

import (
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
)

func TestLabelValueOfAUserName(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a plain name is kept":              {"ada-l_1.x", "ada-l_1.x"},
		"a service account loses its colon": {"system:serviceaccount:blue:ci", "system_serviceaccount_blue_ci"},
		"edges are trimmed":                 {"-ada@", "ada"},
		"a long name is cut":                {strings.Repeat("a", 80), strings.Repeat("a", 63)},
		"nothing may be left":               {"@@@", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := admissionrules.UserLabelValue(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
