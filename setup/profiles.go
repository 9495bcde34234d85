// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed profiles/*.yaml
var profiles embed.FS

// Profiles are the names of the values files in profiles/.
func Profiles() []string {
	entries, _ := profiles.ReadDir("profiles") // embedded, so it cannot fail
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Profile is the text of a values file in profiles/.
func Profile(name string) ([]byte, error) {
	text, err := profiles.ReadFile("profiles/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there is no profile %q; choose one of %s", name, strings.Join(Profiles(), ", "))
	}
	return text, nil
}
