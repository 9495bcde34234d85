// SPDX-License-Identifier: Apache-2.0

// Package submit submits a training job from its settings file: it renders the job, refuses
// it if its queue can never admit it, creates it, and follows it until it ends.
package submit

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// Settings merges settings files and assignments as helm template merges --values and --set:
// a later file overrides an earlier one, and assignments override files. The file "-" is stdin.
func Settings(files, assignments []string, stdin io.Reader) (map[string]any, error) {
	all := map[string]any{}
	for _, name := range files {
		text, err := read(name, stdin)
		if err != nil {
			return nil, fmt.Errorf("cannot read the settings: %w", err)
		}
		settings, err := parsed(name, text)
		if err != nil {
			return nil, err
		}
		all = chartutil.MergeTables(settings, all)
	}
	for _, assignment := range assignments {
		if err := strvals.ParseInto(assignment, all); err != nil {
			return nil, fmt.Errorf("cannot read --set %s: %w", assignment, err)
		}
	}
	return all, nil
}

// parsed are the settings in a file.
func parsed(name string, text []byte) (map[string]any, error) {
	settings := map[string]any{}
	var other []any
	if yaml.Unmarshal(text, &other) == nil && other != nil {
		return nil, fmt.Errorf("%s has no settings: write NAME: VALUE, one in each line", name)
	}
	if err := yaml.UnmarshalStrict(text, &settings); err != nil {
		return nil, fmt.Errorf("cannot read the settings in %s: %w", name, err)
	}
	if kind, is := settings["kind"].(string); is && settings["apiVersion"] != nil {
		return nil, fmt.Errorf("%s is a manifest of the kind %s, and not settings of a job: submit it with kubectl create, or wrap it first with mlbatch pack", name, kind)
	}
	return settings, nil
}

// Value is a setting as --set reads it: a number if it is one, else a text.
func Value(text string) any {
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number
	}
	return text
}

// Text is a setting that is a text, also if it looks like a number.
func Text(text string) any { return text }

func read(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}
