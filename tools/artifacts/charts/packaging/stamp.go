// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// token matches a placeholder in values.yaml, such as @kueue.tag@. setup/versions.yaml has its value.
var token = regexp.MustCompile(`@[a-zA-Z.-]+@`)

// tokens returns the values of the placeholders by name.
func tokens(v setup.Versions) map[string]string {
	facts := map[string]string{"scheduler.name": v.SchedulerName}
	for _, p := range parts.All {
		for _, i := range p.Images {
			image := p.Reference(i, v)
			at := strings.LastIndex(image, ":")
			facts[i.Token+".repository"], facts[i.Token+".tag"] = image[:at], image[at+1:]
		}
	}
	return facts
}

// stamp replaces the placeholders in a chart's values.yaml.
func stamp(files map[string][]byte, facts map[string]string) error {
	text, ok := files["values.yaml"]
	if !ok {
		return nil
	}
	var unknown []string
	files["values.yaml"] = token.ReplaceAllFunc(text, func(found []byte) []byte {
		fact, known := facts[string(bytes.Trim(found, "@"))]
		if !known {
			unknown = append(unknown, string(found))
		}
		return []byte(fact)
	})
	if unknown != nil {
		return fmt.Errorf("values.yaml has unknown tokens: %s", strings.Join(unknown, ", "))
	}
	return nil
}
