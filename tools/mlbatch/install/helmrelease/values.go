// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"

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
		values, err := readValues(path)
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

// readValues reads a values file. Helm takes the last of two equal keys, so that the first ones have no effect: that
// is an error here.
func readValues(path string) (chartutil.Values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values, err := chartutil.ReadValues(text)
	switch {
	case err != nil && strings.Contains(err.Error(), "cannot unmarshal"):
		return nil, errors.New("it has no keys: write lines such as 'kueue: {enabled: false}'")
	case err != nil && strings.Contains(err.Error(), "cannot start any token"):
		return nil, fmt.Errorf("indent with spaces, not with tabs: %w", err)
	case err != nil:
		return nil, err
	}
	if key := twice.FindStringSubmatch(fmt.Sprint(yaml.UnmarshalStrict(text, &map[string]any{}))); key != nil {
		return nil, fmt.Errorf("the key %s is there twice, and the first one has no effect: join them (%s)", key[2], key[1])
	}
	return values, nil
}

// twice matches the complaint about a key.
var twice = regexp.MustCompile(`(line \d+): key (\S+) already set in map`)

// AllValues returns the values of a release together with the defaults of its chart.
func (r Release) AllValues(archive []byte, values map[string]any) (map[string]any, error) {
	loaded, err := r.Load(archive)
	if err != nil {
		return nil, err
	}
	return chartutil.CoalesceValues(loaded, values)
}
