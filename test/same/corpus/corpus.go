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

// quick is how many generated objects there are for each one that is in the quick part.
const quick = 12

// Shard returns a part of all objects: quick, all, known, restarts, or i/n. Operators are killed in restarts only,
// because that touches all objects.
func Shard(all []Case, name string) (part []Case, err error) {
	from, every, err := stride(name, len(all))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(c Case) bool { return c.restarts() != (name == "restarts") })
	known := name == "quick" || name == "known"
	for i, c := range all {
		if i%every == from || c.Known && known {
			part = append(part, c)
		}
	}
	return part, nil
}

// stride says which of so many objects are taken: the one at from, and then every so many.
func stride(name string, all int) (from, every int, err error) {
	switch name {
	case "all", "restarts":
		return 0, 1, nil
	case "quick":
		return 0, quick, nil
	case "known":
		return 0, all, nil
	}
	return fraction(name)
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
