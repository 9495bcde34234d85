// SPDX-License-Identifier: Apache-2.0

// Package troubles lets the calls of a controller fail, one at a time or at random, so that a
// test sees that the controller comes to the same place as without trouble.
package troubles

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Manner is how a call fails. A test may add its own: they are others' deeds right before the
// call, which Wire.Outrun does.
type Manner string

// The manners that any controller knows.
const (
	// Fails: the call returns an error, and nothing has happened.
	Fails Manner = "fails"
	// Lost: the call has succeeded, but returns an error.
	Lost Manner = "lost"
	// Outrun: another client changes the object just before the call.
	Outrun Manner = "outrun"
	// Dies: the process dies before the call, which is the same as after the previous one.
	Dies Manner = "dies"
)

// Passing are the manners after which a story continues.
var Passing = []Manner{Fails, Lost, Outrun, Dies}

// Trouble is how a call fails, and with which error.
type Trouble struct {
	Manner Manner
	answer answer
}

func (t Trouble) String() string {
	if t.answer.name == "" {
		return string(t.Manner)
	}
	return string(t.Manner) + "_" + t.answer.name
}

// answer is an error that an API server or a network returns occasionally.
type answer struct {
	name string
	err  error
}

var answers = []answer{
	{"500", apierrors.NewInternalError(fmt.Errorf("etcdserver: leader changed"))},
	{"504", apierrors.NewTimeoutError("the request did not complete in time", 0)},
	{"429", apierrors.NewTooManyRequestsError("too many requests")},
	{"refused", fmt.Errorf("dial tcp 10.0.0.1:443: connect: %w", syscall.ECONNREFUSED)},
}

// Call is a request to the API server, and how it can fail.
type Call struct {
	Name    string
	Manners []Manner
}

// Death is the panic that ends a process in the middle of its work.
type Death struct{}

// Wire counts the calls of a life, across all of its processes, and makes some of them fail.
type Wire struct {
	Calls    []Call
	Troubles map[int]Trouble // by the number of the call, starting with 1
	// Outrun lets other clients be faster than the controller.
	Outrun func(Manner)
	// Lags reports whether a cache stays stale for now.
	Lags func(cached string) bool
}

// Carry makes one call.
func (w *Wire) Carry(name string, manners []Manner, happen func() error) error {
	w.Calls = append(w.Calls, Call{name, manners})
	t, troubled := w.Troubles[len(w.Calls)]
	if !troubled || !slices.Contains(manners, t.Manner) {
		return happen()
	}
	switch t.Manner {
	case Fails:
		return t.answer.err
	case Dies:
		panic(Death{})
	case Lost:
		if err := happen(); err != nil {
			return err // a real error comes first
		}
		return t.answer.err
	}
	w.Outrun(t.Manner)
	return happen()
}

// String lists the calls, and which of them failed.
func (w *Wire) String() string {
	var text strings.Builder
	for i, c := range w.Calls {
		fmt.Fprintf(&text, "  %3d %s %s\n", i+1, c.Name, w.Troubles[i+1])
	}
	return text.String()
}

// Of returns the troubles that call number n can have, counted from 0: with every error, or with
// one that n selects.
func Of(c Call, n int, everyAnswer bool) []Trouble {
	var all []Trouble
	for _, m := range c.Manners {
		possible := answers
		if m != Fails && m != Lost {
			possible = []answer{{}}
		} else if !everyAnswer {
			possible = answers[n%len(answers) : n%len(answers)+1]
		}
		for _, a := range possible {
			all = append(all, Trouble{m, a})
		}
	}
	return all
}

// Never is for caches that are not stale.
func Never(string) bool { return false }

// Reliable is a wire with only these troubles.
func Reliable(troubles map[int]Trouble) *Wire {
	return &Wire{Troubles: troubles, Lags: Never}
}

// AtRandom is a wire with two to four troubles among so many calls, and in every third case stale
// caches.
func AtRandom(seed uint64, calls int) *Wire {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &Wire{Troubles: map[int]Trouble{}, Lags: func(string) bool { return random.IntN(3) == 0 }}
	for range 2 + random.IntN(3) {
		w.Troubles[1+random.IntN(calls)] = Trouble{Passing[random.IntN(len(Passing))], answers[random.IntN(len(answers))]}
	}
	return w
}
