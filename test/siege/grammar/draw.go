// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const appWrappers = "appwrappers.workload.codeflare.dev"

// Grammar is what can be drawn from.
type Grammar struct {
	// Created are the kinds whose objects the role lets its holder create.
	Created []Kind
	// Wrapped can be in an AppWrapper.
	Wrapped []Kind
	// Others are resources of which the role lets its holder delete only what controllers have made.
	Others []string
}

// Episode draws calls that belong together: most name what one of them has created.
func (g Grammar) Episode(seed uint64, number, calls int) []Call {
	e := &episode{Grammar: g, random: rand.New(rand.NewPCG(seed, uint64(number)))}
	e.calls = append(e.calls, e.creates(), waits(e))
	for len(e.calls) < calls {
		e.calls = append(e.calls, e.draw())
	}
	return e.calls
}

// episode is what has been drawn.
type episode struct {
	Grammar
	random *rand.Rand
	made   []made
	calls  []Call
}

// made is an object as it was created, if it was. Whether a call is accepted does not change those that follow, so
// that a script without some of its calls still means the same.
type made struct {
	resource, name string
	kind           Kind
	body           map[string]any
	inner          *Kind // what an AppWrapper wraps
}

// moves are what comes next, and how often.
var moves = []struct {
	weight int
	draw   func(*episode) Call
}{
	{4, (*episode).creates},
	{8, (*episode).changes},
	{3, (*episode).deletes},
	{2, (*episode).changesOthers},
	{2, (*episode).deletesOthers},
	{1, (*episode).scales},
	{3, waits},
	{2, (*episode).races},
}

func (e *episode) draw() Call {
	total := 0
	for _, m := range moves {
		total += m.weight
	}
	at := e.random.IntN(total)
	for _, m := range moves {
		if at -= m.weight; at < 0 {
			return m.draw(e)
		}
	}
	return waits(e)
}

func waits(e *episode) Call { return Call{Verb: Wait, Body: int64(1 + e.random.IntN(3))} }

// mostObjects of an episode: Kueue shall look at what is done, and not work off a heap.
const mostObjects = 4

// creates draws an object that is accepted as often as not: every second one has no change.
func (e *episode) creates() Call {
	o := e.object()
	body, about := o.body, ""
	if e.random.IntN(2) == 0 {
		changes := e.unusual(o)
		body, about = changed(o.body, changes), describe(changes)
		o.body = body
	}
	if len(e.made) < mostObjects {
		e.made = append(e.made, o)
	}
	return Call{Verb: Create, Resource: o.resource, Name: o.name, Body: body, About: about}
}

// object is one that nobody refuses.
func (e *episode) object() made {
	name := Episode + "-" + string(rune('a'+len(e.made)%mostObjects))
	kind := e.kind()
	o := made{resource: kind.Resource, name: name, kind: kind, body: named(kind.Base, name)}
	if kind.Resource == appWrappers && len(e.Wrapped) > 0 {
		inner := pick(e.random, e.Wrapped)
		o.inner = &inner
		o.body = changed(o.body, []change{{path: []string{"spec", "components"}, value: []any{map[string]any{"template": named(inner.Base, name)}}}})
	}
	return o
}

// kind is AppWrapper or bare work more often than anything else.
func (e *episode) kind() Kind {
	var wrappers, work []Kind
	for _, k := range e.Created {
		switch {
		case k.Resource == appWrappers:
			wrappers = append(wrappers, k)
		case len(templates(k.Base, nil)) > 0:
			work = append(work, k)
		}
	}
	from := pick(e.random, [][]Kind{wrappers, wrappers, work, work, e.Created})
	if len(from) == 0 {
		from = e.Created
	}
	return pick(e.random, from)
}

func named(base map[string]any, name string) map[string]any {
	return changed(base, []change{{path: []string{"metadata", "name"}, value: name}})
}

// unusual draws one to three changes of an object.
func (e *episode) unusual(o made) (all []change) {
	for range 1 + e.random.IntN(3)*e.random.IntN(2) {
		all = append(all, e.change(o)...)
	}
	return all
}

var wrappedAt = []string{"spec", "components", "0", "template"}

func (e *episode) change(o made) []change {
	if inner, is := at(o.body, wrappedAt).(map[string]any); is && o.inner != nil && e.random.IntN(3) > 0 {
		return below(wrappedAt, e.change(made{resource: o.inner.Resource, name: o.name, kind: *o.inner, body: inner}))
	}
	switch choice := e.random.IntN(12); {
	case choice < 4:
		c := walk(o.kind.Schemas, o.kind.Spec, o.body["spec"], e.random)
		return below([]string{"spec"}, []change{c})
	case choice < 6:
		return e.resized(o)
	case choice < 8:
		return e.retemplated(o)
	case choice == 8:
		return []change{kept(e.random)}
	case choice == 9 && len(e.made) > 0:
		return []change{owned(e.random, pick(e.random, e.made))}
	}
	return []change{labelled(e.random)}
}

// resized changes a number that the object has.
func (e *episode) resized(o made) []change {
	paths := sizes(o.body["spec"], []string{"spec"})
	if len(paths) == 0 {
		return []change{labelled(e.random)}
	}
	return []change{{path: pick(e.random, paths), value: pick(e.random, integers)}}
}

// retemplated follows a rule in one of the object's pod templates.
func (e *episode) retemplated(o made) []change {
	paths := templates(o.body, nil)
	if len(paths) == 0 {
		return []change{labelled(e.random)}
	}
	return below(pick(e.random, paths), []change{pick(e.random, rules).change(e.random)})
}

func describe(changes []change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.String())
	}
	return strings.Join(all, ", ")
}

// target is what was created, or what an AppWrapper wraps.
func (e *episode) target() made {
	o := pick(e.random, e.made)
	if inner, is := at(o.body, wrappedAt).(map[string]any); is && o.inner != nil && e.random.IntN(3) == 0 {
		return made{resource: o.inner.Resource, name: o.name, kind: *o.inner, body: inner}
	}
	return o
}

// changes patches it.
func (e *episode) changes() Call {
	if len(e.made) == 0 {
		return e.creates()
	}
	o := e.target()
	changes := e.unusual(o)
	kind := pick(e.random, []string{Merge, JSON, Apply})
	return Call{Verb: Patch, Resource: o.resource, Name: o.name, Type: kind, Body: patch(kind, o.body, changed(o.body, changes), changes), About: describe(changes)}
}

func (e *episode) deletes() Call {
	if len(e.made) == 0 {
		return e.creates()
	}
	o := e.target()
	return e.deletion(Call{Resource: o.resource, Name: o.name})
}

// deletion draws the options.
func (e *episode) deletion(c Call) Call {
	c.Verb = Delete
	c.Propagation = pick(e.random, []string{"", "Background", "Foreground", "Orphan"})
	if e.random.IntN(3) == 0 {
		grace := pick(e.random, []int64{0, 1, 30, 86400})
		c.Grace = &grace
	}
	return c
}

// other draws something that a controller may have made.
func (e *episode) other() Call {
	resources := slices.Clone(e.Others)
	for _, k := range e.Created {
		resources = append(resources, k.Resource)
	}
	return Call{Resource: pick(e.random, resources), Nth: e.random.IntN(3)}
}

func (e *episode) deletesOthers() Call { return e.deletion(e.other()) }

func (e *episode) changesOthers() Call {
	c := e.other()
	changes := []change{pick(e.random, []func(*rand.Rand) change{labelled, kept, func(random *rand.Rand) change {
		return change{path: []string{"spec", "suspend"}, value: random.IntN(2) == 0}
	}})(e.random)}
	c.Verb, c.Type, c.Body, c.About = Patch, Merge, mergePatch(nil, changed(map[string]any{}, changes), changes), describe(changes)
	return c
}

func (e *episode) scales() Call {
	c := e.other()
	if len(e.made) > 0 && e.random.IntN(2) == 0 {
		o := pick(e.random, e.made)
		c = Call{Resource: o.resource, Name: o.name}
	}
	c.Verb, c.Body = Scale, map[string]any{"spec": map[string]any{"replicas": pick(e.random, integers)}}
	return c
}

// races sends two calls at the same time.
func (e *episode) races() Call {
	draws := []func() Call{e.changes, e.deletes, e.creates}
	first, second := pick(e.random, draws)(), pick(e.random, draws)()
	first.Twin, first.About = &second, fmt.Sprintf("%s | %s", first.About, second.About)
	return first
}
