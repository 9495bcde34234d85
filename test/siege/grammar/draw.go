// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/test/counted/variation"
)

// AppWrappers wrap other work.
const AppWrappers = "appwrappers.workload.codeflare.dev"

// Grammar is what can be drawn from.
type Grammar struct {
	// Created are the kinds whose objects the role lets its holder create.
	Created []Kind
	// Wrapped can be in an AppWrapper.
	Wrapped []Kind
	// Others are resources of which the role lets its holder delete only what controllers have made.
	Others []string
	// Costly draws amounts that programs decode for hours, too. Somebody has to refuse them.
	Costly bool
}

// Episode draws calls that belong together: most name what one of them has created.
func (g Grammar) Episode(seed uint64, number, calls int) []Call {
	e := &episode{Grammar: g, random: rand.New(rand.NewPCG(seed, uint64(number)))}
	e.calls = append(e.calls, e.creates(), Call{Verb: Wait, Body: int64(8)})
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

// choice is something that is drawn as often as it weighs.
type choice[T any] struct {
	weight int
	draw   T
}

func choose[T any](random *rand.Rand, from []choice[T]) T {
	total := 0
	for _, c := range from {
		total += c.weight
	}
	at := random.IntN(total)
	for _, c := range from {
		if at -= c.weight; at < 0 {
			return c.draw
		}
	}
	return from[0].draw
}

// moves are what comes next.
var moves = []choice[func(*episode) Call]{
	{4, (*episode).creates},
	{8, (*episode).changes},
	{3, (*episode).deletes},
	{2, (*episode).changesOthers},
	{2, (*episode).deletesOthers},
	{1, (*episode).scales},
	{3, waits},
	{2, (*episode).races},
}

func (e *episode) draw() Call { return choose(e.random, moves)(e) }

// waits lets controllers work. What was created first needs longest to get its pods.
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

// object is one that nobody refuses. The pods of one of its templates may end by themselves.
func (e *episode) object() made {
	name := Episode + "-" + string(rune('a'+len(e.made)%mostObjects))
	kind := e.kind()
	o := made{resource: kind.Resource, name: name, kind: kind, body: named(kind.Base, name)}
	if kind.Resource == AppWrappers && len(e.Wrapped) > 0 {
		inner := pick(e.random, e.Wrapped)
		o.inner = &inner
		o.body = changed(o.body, []change{{path: []string{"spec", "components"}, value: []any{map[string]any{"template": named(inner.Base, name)}}}})
	}
	if paths := templates(o.body, nil); len(paths) > 0 && e.random.IntN(3) == 0 {
		o.body = changed(o.body, below(pick(e.random, paths), []change{{path: ends, value: "3s"}}))
	}
	return o
}

// ends is the path of the time after which a pod of a simulated node ends.
var ends = []string{"metadata", "annotations", runFor}

// kind is AppWrapper or bare work more often than anything else.
func (e *episode) kind() Kind {
	var wrappers, work []Kind
	for _, k := range e.Created {
		switch {
		case k.Resource == AppWrappers:
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

// unusual draws one to four changes of an object.
func (e *episode) unusual(o made) (all []change) {
	for range 1 + e.random.IntN(4)*e.random.IntN(2) {
		all = append(all, e.change(o)...)
	}
	return all
}

var wrappedAt = []string{"spec", "components", "0", "template"}

func (e *episode) change(o made) []change {
	if inner, is := variation.At(o.body, wrappedAt).(map[string]any); is && o.inner != nil && e.random.IntN(3) > 0 {
		return below(wrappedAt, e.change(made{resource: o.inner.Resource, name: o.name, kind: *o.inner, body: inner}))
	}
	return choose(e.random, sorts)(e, o)
}

// sorts of changes.
var sorts = []choice[func(*episode, made) []change]{
	{3, (*episode).walked},
	{9, (*episode).spoken},
	{2, (*episode).resized},
	{9, (*episode).retemplated},
	{2, func(e *episode, _ made) []change { return []change{kept(e.random)} }},
	{1, (*episode).owned},
	{2, (*episode).labelled},
}

func (e *episode) walked(o made) []change {
	return below([]string{"spec"}, []change{walk(o.kind.Schemas, o.kind.Spec, o.body["spec"], e.random)})
}

func (e *episode) labelled(o made) []change { return []change{labelled(o.group(), e.random)} }

func (e *episode) owned(o made) []change {
	if len(e.made) == 0 {
		return e.labelled(o)
	}
	return []change{owned(e.random, pick(e.random, e.made))}
}

// group of the object's kind, which its operator puts before the keys that it reads.
func (o made) group() string {
	_, group, _ := strings.Cut(o.resource, ".")
	return group
}

// spoken changes a field that many operators have.
func (e *episode) spoken(o made) []change {
	paths := spokenOf(o.kind.Schemas, o.kind.Spec, o.body["spec"], nil, 0)
	if len(paths) == 0 {
		return e.resized(o)
	}
	c := spoke(pick(e.random, paths), e.random)
	if amounts, are := c.value.(map[string]any); are && amounts["cpu"] != nil && e.Costly {
		c.value = map[string]any{"cpu": pick(e.random, costly)}
	}
	return below([]string{"spec"}, []change{c})
}

// resized changes a number that the object has.
func (e *episode) resized(o made) []change {
	paths := sizes(o.body["spec"], []string{"spec"})
	if len(paths) == 0 {
		return e.labelled(o)
	}
	return []change{{path: pick(e.random, paths), value: pick(e.random, integers)}}
}

// retemplated follows a rule in one of the object's pod templates.
func (e *episode) retemplated(o made) []change {
	paths := templates(o.body, nil)
	if len(paths) == 0 {
		return e.labelled(o)
	}
	c := pick(e.random, rules).change(e.random)
	if e.Costly && e.random.IntN(30) == 0 {
		c = change{path: []string{"spec", "containers", "0", "resources", "requests", "memory"}, value: pick(e.random, costly)}
	}
	return below(pick(e.random, paths), []change{c})
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
	if inner, is := variation.At(o.body, wrappedAt).(map[string]any); is && o.inner != nil && e.random.IntN(3) == 0 {
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
	changes := []change{pick(e.random, []func() change{
		func() change { return labelled("", e.random) },
		func() change { return kept(e.random) },
		func() change { return change{path: []string{"spec", "suspend"}, value: e.random.IntN(2) == 0} },
	})()}
	c.Verb, c.Type, c.Body, c.About = Patch, Merge, mergePatch(nil, changed(map[string]any{}, changes), changes), describe(changes)
	if e.random.IntN(4) == 0 {
		return toleratesMore(c, tolerated(e.random))
	}
	return c
}

// toleratesMore adds to a list: the API server lets nobody take tolerations from a pod.
func toleratesMore(c Call, t change) Call {
	c.Type, c.Body, c.About = JSON, []any{map[string]any{"op": "add", "path": "/spec/tolerations/-", "value": t.value.([]any)[0]}}, t.String()
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
	first.Twin = &second
	return first
}
