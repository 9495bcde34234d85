// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/counted/variation"
	"github.com/mlbatch/mlbatch/test/same/kubelet"
	"github.com/mlbatch/mlbatch/test/same/pairwise"
)

//go:embed kinds
var kinds embed.FS

// table is a file of kinds: an object, and the fields that order, limit, restart, tolerate or end its pods.
type table struct {
	// AtLeast is how many objects there are at least.
	AtLeast int `json:"atLeast"`
	// Templates are the paths of pod templates, by names.
	Templates map[string]string `json:"templates"`
	Base      map[string]any    `json:"base"`
	Fields    []field           `json:"fields"`
	// Impossible are options that do not go together, by fields.
	Impossible []map[string][]string `json:"impossible"`
}

type field struct {
	Name    string   `json:"name"`
	Options []option `json:"options"`
}

type option struct {
	Name string `json:"name"`
	// Set are values of fields, by their paths. Null removes a field.
	Set map[string]any `json:"set"`
	// Play is added to what the pods of a template do.
	Play map[string]string `json:"play"`
}

// Generated are the objects that a seed draws, of each kind.
func Generated(seed uint64) (all []Case, err error) {
	files, err := kinds.ReadDir("kinds")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := kinds.ReadFile("kinds/" + file.Name())
		if err != nil {
			return nil, err
		}
		var t table
		if err := yaml.UnmarshalStrict(text, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		cases, err := t.cases(strings.TrimSuffix(file.Name(), ".yaml"), seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		all = append(all, cases...)
	}
	return all, nil
}

func (t table) cases(kind string, seed uint64) (all []Case, err error) {
	var options []int
	for _, f := range t.Fields {
		options = append(options, len(f.Options))
	}
	rows := pairwise.More(pairwise.Rows(options, t.possible, seed), options, t.possible, seed, t.AtLeast)
	for i, row := range rows {
		object, what, err := t.object(row)
		if err != nil {
			return nil, err
		}
		object.SetName("same") // short, because operators derive longer names
		all = append(all, Case{Name: fmt.Sprintf("%s-%03d", kind, i), What: what, Object: object})
	}
	return all, nil
}

// possible reports whether the choices of a row go together.
func (t table) possible(row []int) bool {
	chosen := map[string]string{}
	for i, choice := range row {
		if choice >= 0 {
			chosen[t.Fields[i].Name] = t.Fields[i].Options[choice].Name
		}
	}
	for _, together := range t.Impossible {
		all := true
		for field, names := range together {
			all = all && slices.Contains(names, chosen[field])
		}
		if all {
			return false
		}
	}
	return true
}

// object makes the object of a row, and says what differs from the first options.
func (t table) object(row []int) (*unstructured.Unstructured, string, error) {
	text, err := json.Marshal(t.Base)
	if err != nil {
		return nil, "", err
	}
	o, what := &unstructured.Unstructured{}, []string{}
	if err := o.UnmarshalJSON(text); err != nil { // a copy
		return nil, "", err
	}
	for i, choice := range row {
		chosen := t.Fields[i].Options[choice]
		if choice > 0 {
			what = append(what, fmt.Sprintf("%s: %s", t.Fields[i].Name, chosen.Name))
		}
		for _, path := range slices.Sorted(maps.Keys(chosen.Set)) {
			if err := set(o.Object, strings.Split(path, "."), chosen.Set[path]); err != nil {
				return nil, "", fmt.Errorf("%s: %w", path, err)
			}
		}
		for _, template := range slices.Sorted(maps.Keys(chosen.Play)) {
			if err := t.play(o.Object, template, chosen.Play[template]); err != nil {
				return nil, "", err
			}
		}
	}
	return o, strings.Join(what, ", "), nil
}

// play adds a clause to what the pods of a template do.
func (t table) play(object map[string]any, template, clause string) error {
	path := append(strings.Split(t.Templates[template], "."), "metadata", "annotations", kubelet.PlayAnnotation)
	before := variation.At(object, path)
	if before == nil {
		return fmt.Errorf("template %q: there is no %s", template, strings.Join(path, "."))
	}
	return set(object, path, fmt.Sprintf("%v; %s", before, clause))
}

// set writes a value at a path, and makes the objects on the way.
func set(object map[string]any, path []string, value any) error {
	var parent any = object
	for i := range path[:len(path)-1] {
		next := variation.At(parent, path[i:i+1])
		if next == nil {
			fields, ok := parent.(map[string]any)
			if !ok {
				return fmt.Errorf("there is no %s", strings.Join(path[:i+1], "."))
			}
			next = map[string]any{}
			fields[path[i]] = next
		}
		parent = next
	}
	fields, ok := parent.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is not in an object", path[len(path)-1])
	}
	if value == nil {
		delete(fields, path[len(path)-1])
		return nil
	}
	fields[path[len(path)-1]] = value
	return nil
}
