// SPDX-License-Identifier: Apache-2.0

// Package drawn has objects with values at the edge of what their fields may have, and what our admission says of them.
package drawn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"strconv"
)

// Mark is the annotation of each pod template with the path to it.
const Mark = "drawn.mlbatch.dev/at"

// Object is what test/counted/drawn writes of one.
type Object struct {
	What   string         `json:"what"`
	Object map[string]any `json:"object"`
	// Refused is why admission refuses it; the rest is empty then.
	Refused string `json:"refused"`
	// Stored is the AppWrapper that wraps it, as the webhooks leave it.
	Stored json.RawMessage `json:"stored"`
	// Pods are how many there are of the template at each path.
	Pods map[string]int32 `json:"pods"`
}

// Draw draws so many objects of each kind.
func Draw(ctx context.Context, seed uint64, specs int) ([]Object, error) {
	cmd := exec.CommandContext(ctx, "go", "run", "./test/counted/drawn", "-seed", strconv.FormatUint(seed, 10), "-specs", strconv.Itoa(specs))
	cmd.Dir = "../../../../.."
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot draw objects: %w\n%s", err, problems.String())
	}
	var all []Object
	for line := range bytes.Lines(out) {
		var o Object
		if err := json.Unmarshal(line, &o); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// Same takes no pods for the same as nothing.
func Same(a, b map[string]int32) bool {
	none := func(_ string, count int32) bool { return count == 0 }
	a, b = maps.Clone(a), maps.Clone(b)
	maps.DeleteFunc(a, none)
	maps.DeleteFunc(b, none)
	return maps.Equal(a, b)
}
