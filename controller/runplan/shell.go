// SPDX-License-Identifier: Apache-2.0

package runplan

// inShell runs its argument in bash, or in sh where there is no bash.
const inShell = `exec "$(command -v bash || command -v sh)" -c "$0"`

// shell runs the line in each of the workers. JOB_COMPLETION_INDEX tells them apart.
func (j job) shell() []component {
	command := []string{"sh", "-c", literal(inShell), literal(j.line())}
	return []component{{
		"apiVersion": "batch/v1",
		"kind":       "Job",
		"metadata":   map[string]any{"name": j.name},
		"spec":       j.indexed(j.pod("worker", "main", command)),
	}}
}
