// SPDX-License-Identifier: Apache-2.0

// Package corpus is the objects that run bare and wrapped.
package corpus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Case is an object.
type Case struct {
	// Name is the same in all runs.
	Name string
	// What says what is special about it.
	What string
	// Disturb says what somebody does meanwhile: an action, when, and the slot of a pod.
	Disturb string
	// Sample is an object that a module ships. Each has a row.
	Sample bool
	// Known objects are in the quick part.
	Known  bool
	Object *unstructured.Unstructured
}

// All are all objects.
func All(ctx context.Context, seed uint64) (all []Case, err error) {
	known, err := Known()
	if err != nil {
		return nil, err
	}
	generated, err := Generated(seed)
	if err != nil {
		return nil, err
	}
	upset, err := Disturbed()
	if err != nil {
		return nil, err
	}
	samples, err := Samples(ctx)
	return slices.Concat(known, generated, upset, samples), err
}

// Shard returns a part of all objects: quick, all, known, restarts, or i/n. Operators are killed in restarts only,
// because that touches all objects.
func Shard(all []Case, name string) (part []Case, err error) {
	all = slices.DeleteFunc(slices.Clone(all), func(c Case) bool { return c.restarts() != (name == "restarts") })
	switch name {
	case "all", "restarts":
		return all, nil
	case "known":
		return slices.DeleteFunc(all, func(c Case) bool { return !c.Known }), nil
	case "quick":
		return quick(all), nil
	}
	from, every, err := fraction(name)
	if err != nil {
		return nil, err
	}
	for i := from; i < len(all); i += every {
		part = append(part, all[i])
	}
	return part, nil
}

// quick are the known objects, one of each kind that is generated, of each module, and disturbed of each API.
func quick(all []Case) (some []Case) {
	count := map[string]int{}
	for _, c := range all {
		group := c.group()
		if count[group]++; c.Known || count[group] == 1 {
			some = append(some, c)
		}
	}
	return some
}

// group is what an object is one of.
func (c Case) group() string {
	module, _, _ := strings.Cut(c.Name, "-")
	switch {
	case c.Disturb != "":
		return "disturbed " + c.Object.GroupVersionKind().Group
	case c.Known:
		return "known"
	case c.Sample:
		return "of " + module
	}
	return c.Object.GetKind()
}

// restarts reports whether programs are killed.
func (c Case) restarts() bool { return strings.HasPrefix(c.Disturb, "restart:") }

// fraction reads i/n.
func fraction(text string) (from, every int, err error) {
	if _, err := fmt.Sscanf(text, "%d/%d", &from, &every); err != nil || from < 1 || every < from {
		return 0, 0, fmt.Errorf("there is no part %q: say quick, all, known, restarts, or i/n", text)
	}
	return from - 1, every, nil
}
