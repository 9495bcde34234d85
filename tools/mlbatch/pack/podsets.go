// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// PodSet declares some pods of an object.
type PodSet struct {
	Kind, Name string
	// Path leads to their template from the top of the object, as in spec.template. It is "." if
	// the object itself has the containers.
	Path     string
	Replicas int32
}

// ParsePodSet reads KIND/NAME:PATH=REPLICAS, such as ReplicationController/web:spec.template=2.
func ParsePodSet(text string) (PodSet, error) {
	object, place, placed := strings.Cut(text, ":")
	kind, name, named := strings.Cut(object, "/")
	path, number, counted := strings.Cut(place, "=")
	replicas, err := strconv.ParseUint(number, 10, 31)
	if !placed || !named || !counted || kind == "" || name == "" || path == "" || err != nil {
		return PodSet{}, fmt.Errorf("cannot read --pod-set %s: write KIND/NAME:PATH=REPLICAS, such as ReplicationController/web:spec.template=2", text)
	}
	return PodSet{Kind: kind, Name: name, Path: path, Replicas: int32(replicas)}, nil
}

func (s PodSet) String() string {
	return fmt.Sprintf("%s/%s:%s=%d", s.Kind, s.Name, s.Path, s.Replicas)
}

// declare gives each object its declared pod sets.
func (p *packer) declare() {
	for _, s := range p.PodSets {
		i := slices.IndexFunc(p.parts, func(part *part) bool {
			return part.Object.GetKind() == s.Kind && nameOf(part.Object) == s.Name
		})
		if i < 0 {
			p.refuseAll("--pod-set %s: there is no %s %s", s, s.Kind, s.Name)
			continue
		}
		p.parts[i].declared = append(p.parts[i].declared, v1beta2.AppWrapperPodSet{Path: inComponent(s.Path), Replicas: &s.Replicas})
	}
}

// itself is the path of an object that is a pod template.
const itself = "."

// inComponent is the path as an AppWrapper has it.
func inComponent(path string) string {
	if path == itself {
		return "template"
	}
	return "template." + path
}

// count is the number of pods of an object.
func (p *part) count() int {
	pods := 0
	for _, s := range p.podSets {
		pods += int(s.Count())
	}
	return pods
}

// templatesIn returns the paths of what looks like pod templates in an object.
func templatesIn(value any, path string) []string {
	var found []string
	switch v := value.(type) {
	case map[string]any:
		if hasContainers(v["spec"]) {
			return []string{cmp.Or(path, itself)}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, templatesIn(v[key], strings.TrimPrefix(path+"."+key, "."))...)
		}
	case []any:
		for i := range v {
			found = append(found, templatesIn(v[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return found
}

func hasContainers(spec any) bool {
	fields, _ := spec.(map[string]any)
	containers, _ := fields["containers"].([]any)
	return len(containers) > 0
}
