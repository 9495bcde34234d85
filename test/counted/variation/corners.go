// SPDX-License-Identifier: Apache-2.0

package variation

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// leftOut is the value of a field that an object does not have.
type leftOut struct{}

func (leftOut) String() string { return "(left out)" }

// usual is how many of the numbers API servers accept nearly everywhere.
const usual = 8

// numbers are values of a number, most of them at an edge, or none that it may have.
var numbers = []any{
	int64(0), int64(1), int64(2), int64(4), nil, leftOut{}, 2.0, 1e1, 1.5,
	int64(-1), int64(math.MaxInt32), int64(math.MinInt32), int64(1 << 32), "2",
}

// others are values that a field may have in place of its own.
var others = []any{nil, leftOut{}, map[string]any{}, []any{}, "x", int64(1), true}

// Corner is a value for a field of a spec.
type Corner struct {
	path  []string
	value any
}

func (c Corner) String() string { return fmt.Sprintf("%s=%#v", strings.Join(c.path, "."), c.value) }

// Set sets the field.
func (c Corner) Set(spec map[string]any) { put(spec, c.path, c.value) }

// Corners are all values to try of the numbers that stand beside pod templates, or above them.
func (s Schemas) Corners(spec, schema map[string]any) []Corner {
	var all []Corner
	for _, p := range s.places(spec, schema, nil, 0) {
		if p.schema["type"] != "integer" || !hasPodTemplate(At(spec, p.path[:len(p.path)-1])) {
			continue
		}
		for _, value := range numbers {
			all = append(all, Corner{p.path, value})
		}
	}
	return all
}

func hasPodTemplate(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return IsPodTemplate(v) || slices.ContainsFunc(slices.Collect(maps.Values(v)), hasPodTemplate)
	case []any:
		return slices.ContainsFunc(v, hasPodTemplate)
	}
	return false
}

// VaryToCorners sets some fields of a spec to values at the edge of what its schema allows, or beyond it, and says
// which. It also repeats items of lists, and spells fields in another case.
func (s Schemas) VaryToCorners(spec, schema map[string]any, random *rand.Rand) []string {
	places := s.places(spec, schema, nil, 0)
	counts := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.schema["type"] != "integer" })
	var changes []string
	for range 1 + random.IntN(3) {
		if random.IntN(4) == 0 {
			changes = append(changes, s.distort(spec, random))
			continue
		}
		from := places
		if len(counts) > 0 && random.IntN(2) == 0 {
			from = counts
		}
		p := pick(from, random)
		value := p.corner(random)
		put(spec, p.path, value)
		changes = append(changes, fmt.Sprintf("%s=%#v", p, value))
	}
	return changes
}

// corner is a value for the field, usually one that an API server accepts.
func (p place) corner(random *rand.Rand) any {
	values := others
	switch {
	case p.schema["type"] == "integer" && random.IntN(3) > 0:
		values = numbers[:usual]
	case p.schema["type"] == "integer":
		values = numbers
	case random.IntN(4) > 0:
		values = choices(p.schema)
	}
	return values[random.IntN(len(values))]
}

// distort changes what is there already, outside pod templates.
func (s Schemas) distort(spec map[string]any, random *rand.Rand) string {
	paths := present(spec, nil)
	if len(paths) == 0 {
		return "nothing is left"
	}
	path := paths[random.IntN(len(paths))]
	holder, last := At(spec, path[:len(path)-1]), path[len(path)-1]
	list, isList := holder.([]any)
	switch {
	case isList:
		put(spec, path[:len(path)-1], append(slices.Clone(list), clone(At(spec, path))))
		return strings.Join(path, ".") + " twice"
	case random.IntN(3) == 0 && Object(holder) != nil:
		other := strings.ToLower(last)
		if other == last {
			other = strings.ToUpper(last[:1]) + last[1:]
		}
		fields := Object(holder)
		fields[other] = clone(fields[last])
		if random.IntN(2) == 0 {
			delete(fields, last)
		}
		return strings.Join(path, ".") + " as " + other
	}
	value := others[random.IntN(len(others))]
	put(spec, path, value)
	return fmt.Sprintf("%s=%#v", strings.Join(path, "."), value)
}

// present lists the paths of all that a value has above and including its pod templates.
func present(value any, path []string) (found [][]string) {
	if len(path) > 0 {
		found = append(found, slices.Clone(path))
	}
	switch v := value.(type) {
	case map[string]any:
		if IsPodTemplate(v) {
			return found
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = append(found, present(v[name], append(path, name))...)
		}
	case []any:
		for i := range v {
			found = append(found, present(v[i], append(path, strconv.Itoa(i)))...)
		}
	}
	return found
}

// IsPodTemplate tells whether an object has the containers of a pod in its spec.
func IsPodTemplate(object map[string]any) bool {
	_, is := Object(object["spec"])["containers"].([]any)
	return is
}

// put sets a field, or removes it.
func put(spec map[string]any, path []string, value any) {
	if value != any(leftOut{}) {
		Set(spec, path, clone(value))
		return
	}
	if holder := Object(At(spec, path[:len(path)-1])); holder != nil {
		delete(holder, path[len(path)-1])
	}
}

// clone keeps objects from sharing what they have.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		copied := map[string]any{}
		for name, field := range v {
			copied[name] = clone(field)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = clone(v[i])
		}
		return copied
	}
	return value
}
