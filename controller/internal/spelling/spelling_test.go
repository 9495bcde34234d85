// SPDX-License-Identifier: Apache-2.0

package spelling

import "testing"

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"retryLimit", "retryLimit", 0},
		{"retrylimit", "retryLimit", 0},
		{"retryLimits", "retryLimit", 1},
		{"delection", "deletion", 1},
		{"kitten", "sitting", 3},
		{"größe", "grosse", 3},
	} {
		if got := Distance(tc.a, tc.b); got != tc.want {
			t.Errorf("from %q to %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if got := Distance(tc.b, tc.a); got != tc.want {
			t.Errorf("from %q to %q: %d, want %d", tc.b, tc.a, got, tc.want)
		}
	}
}
