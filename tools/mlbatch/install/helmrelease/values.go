// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"fmt"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"

	"github.com/mlbatch/mlbatch/setup"
)

// MergedValues merges profiles, files and assignments; later ones override earlier ones. It
// keeps null values, because null removes a default of the chart.
func (r Release) MergedValues() (map[string]any, error) {
	merged := map[string]any{}
	for _, name := range r.Profiles {
		text, err := setup.Profile(name)
		if err != nil {
			return nil, err
		}
		values, err := chartutil.ReadValues(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read the profile %s: %w", name, err)
		}
		merged = chartutil.MergeTables(values, merged)
	}
	for _, path := range r.Values {
		values, err := chartutil.ReadValuesFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the values file %s: %w", path, err)
		}
		merged = chartutil.MergeTables(values, merged)
	}
	for _, assignment := range r.Set {
		if err := strvals.ParseInto(assignment, merged); err != nil {
			return nil, fmt.Errorf("cannot read --set %s: %w", assignment, err)
		}
	}
	return merged, nil
}

// AllValues returns the values of a release together with the defaults of its chart.
func (r Release) AllValues(archive []byte, values map[string]any) (map[string]any, error) {
	loaded, err := r.Load(archive)
	if err != nil {
		return nil, err
	}
	return chartutil.CoalesceValues(loaded, values)
}
