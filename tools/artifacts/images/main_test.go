// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestBadArgumentsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                    {nil, "name an image"},
		"an image we do not make":    {[]string{"toaster"}, `unknown image "toaster"`},
		"an unknown architecture":    {[]string{"controller", "-arch", "amd64,z80"}, `"z80" is not one of amd64, arm64`},
		"an unknown one of another":  {[]string{"workload", "-arch", "z80"}, `"z80" is not one of amd64, arm64`},
		"an empty architecture list": {[]string{"controller", "-arch", ""}, `"" is not one of`},
		"a superfluous argument":     {[]string{"torch", "now"}, `torch does not take the argument "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one that says %q", err, c.want)
			}
		})
	}
}
