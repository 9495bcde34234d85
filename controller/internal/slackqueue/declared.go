// SPDX-License-Identifier: Apache-2.0

package slackqueue

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

// parse reads the ConfigMap. What can be read is returned beside the error.
func parse(data map[string]string) (queues slackquota.Declarations, failed error) {
	queues = slackquota.Declarations{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		d := &slackquota.Declaration{}
		err := yaml.UnmarshalStrict([]byte(data[name]), d)
		if err == nil && (d.CohortName == "" || len(d.ResourceGroups) == 0) {
			err = errors.New("it has no cohort or no quota")
		}
		if err != nil {
			d, failed = nil, errors.Join(failed, fmt.Errorf("cannot read slack queue %s in ConfigMap %s: upgrade the release of the teams: %w", name, slackquota.DeclaredName, err))
		}
		queues[name] = d
	}
	return queues, failed
}
