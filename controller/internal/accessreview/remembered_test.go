// SPDX-License-Identifier: Apache-2.0

package accessreview

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// question is what is asked of a memory.
type question struct {
	user            authenticationv1.UserInfo
	namespace, verb string
	resource        schema.GroupVersionResource
}

// reviewer answers and counts questions, and can be asked through a memory with its own clock.
type reviewer struct {
	allows func(verb string) bool
	err    error
	asked  int
	now    time.Time
	may    func(question) (bool, error)
}

// withEach tests both memories: of single rights, and of the right to wrap, which has two verbs.
func withEach(t *testing.T, test func(*testing.T, *reviewer)) {
	t.Helper()
	for _, wraps := range []bool{false, true} {
		t.Run(fmt.Sprintf("to wrap: %t", wraps), func(t *testing.T) { test(t, newReviewer(t, wraps)) })
	}
}

func newReviewer(t *testing.T, wraps bool) *reviewer {
	t.Helper()
	r := &reviewer{allows: always, now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	review := Review(func(_ context.Context, review *authorizationv1.SubjectAccessReview) error {
		r.asked++
		review.Status.Allowed = r.allows(review.Spec.ResourceAttributes.Verb)
		return r.err
	})
	clock := func() time.Time { return r.now }
	single, both := review.Remembering(10*time.Second, clock), review.WrapsRemembering(10*time.Second, clock)
	r.may = func(q question) (bool, error) {
		return single.Allows(t.Context(), q.user, q.namespace, q.verb, q.resource)
	}
	if wraps {
		r.may = func(q question) (bool, error) { return both(t.Context(), q.user, q.namespace, q.resource) }
	}
	return r
}

func always(string) bool { return true }

func never(string) bool { return false }

func ada() question {
	user := authenticationv1.UserInfo{
		Username: "ada", UID: "u-1", Groups: []string{"team"},
		Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	}
	return question{user, "blue", "create", jobs}
}

func TestAYesIsRememberedForAWhile(t *testing.T) {
	withEach(t, func(t *testing.T, r *reviewer) {
		for _, tc := range []struct {
			after time.Duration
			asked int
		}{{0, 1}, {0, 1}, {9999 * time.Millisecond, 1}, {time.Millisecond, 2}, {9 * time.Second, 2}} {
			r.now = r.now.Add(tc.after)
			allowed, err := r.may(ada())
			if err != nil || !allowed || r.asked != tc.asked {
				t.Errorf("after %s: allowed %t, %v, asked %d times, want %d", tc.after, allowed, err, r.asked, tc.asked)
			}
		}
	})
}

// Members of teams may wrap Jobs, and not create them.
func TestTheRightToWrapIsRememberedWhicheverVerbItIs(t *testing.T) {
	for _, verb := range []string{"create", "wrap"} {
		r := newReviewer(t, true)
		r.allows = func(asked string) bool { return asked == verb }
		for range 3 {
			if allowed, err := r.may(ada()); err != nil || !allowed {
				t.Errorf("who holds %s: allowed %t, %v", verb, allowed, err)
			}
		}
		if r.asked > 2 {
			t.Errorf("of who holds %s it was asked %d times", verb, r.asked)
		}
	}
}

func TestANoIsNotRemembered(t *testing.T) {
	withEach(t, func(t *testing.T, r *reviewer) {
		r.allows = never
		for range 2 {
			if allowed, _ := r.may(ada()); allowed {
				t.Error("allowed what is not")
			}
		}
		r.allows = always
		if allowed, _ := r.may(ada()); !allowed {
			t.Error("a right that was just given does not count")
		}
	})
}

func TestAReviewThatFailsIsNotRemembered(t *testing.T) {
	withEach(t, func(t *testing.T, r *reviewer) {
		r.err = errors.New("the API server is away")
		for range 2 {
			if allowed, err := r.may(ada()); allowed || !errors.Is(err, r.err) {
				t.Errorf("got %t and %v", allowed, err)
			}
		}
		if r.asked != 2 {
			t.Errorf("asked %d times", r.asked)
		}
	})
}

// Nothing gets past by impersonation: whoever differs in anything is asked about.
func TestNobodyGetsTheAnswerOfAnother(t *testing.T) {
	others := map[string]func(*question){
		"another name":         func(q *question) { q.user.Username = "eve" },
		"another UID":          func(q *question) { q.user.UID = "u-2" },
		"a group less":         func(q *question) { q.user.Groups = nil },
		"another group":        func(q *question) { q.user.Groups = []string{"others"} },
		"a group more":         func(q *question) { q.user.Groups = []string{"team", "others"} },
		"no extra":             func(q *question) { q.user.Extra = nil },
		"another extra":        func(q *question) { q.user.Extra = map[string]authenticationv1.ExtraValue{"scopes": {"a"}} },
		"extra that is joined": func(q *question) { q.user.Extra = map[string]authenticationv1.ExtraValue{"scopes": {"a b"}} },
		"another namespace":    func(q *question) { q.namespace = "red" },
		"another group of it":  func(q *question) { q.resource.Group = "example.com" },
		"another version":      func(q *question) { q.resource.Version = "v2" },
		"another resource":     func(q *question) { q.resource.Resource = "pods" },
	}
	test := func(t *testing.T, r *reviewer, what string, differ func(*question)) {
		t.Helper()
		q := ada()
		if allowed, err := r.may(q); !allowed || err != nil {
			t.Fatal(allowed, err)
		}
		differ(&q)
		r.allows = never
		if allowed, _ := r.may(q); allowed {
			t.Errorf("%s: allowed without being asked about", what)
		}
	}
	for what, differ := range others {
		withEach(t, func(t *testing.T, r *reviewer) { test(t, r, what, differ) })
	}
	test(t, newReviewer(t, false), "another verb", func(q *question) { q.verb = "wrap" })
}

func TestTheMemoryIsBounded(t *testing.T) {
	m := &memory{until: map[key]time.Time{}}
	now := time.Now()
	question := func(i int) key { return keyOf(fmt.Append(nil, i)) }
	for i := range 3 * mostRemembered {
		m.remember(question(i), now, time.Hour)
	}
	if len(m.until) > mostRemembered {
		t.Errorf("%d questions are remembered", len(m.until))
	}
	if !m.allowed(question(3*mostRemembered-1), now) {
		t.Error("the last is forgotten")
	}
}

// The user's groups and extra may be long, and their number is bounded by nobody.
func TestALongQuestionNeedsNoMoreMemory(t *testing.T) {
	withEach(t, func(t *testing.T, r *reviewer) {
		q := ada()
		for i := range 20_000 {
			q.user.Groups = append(q.user.Groups, fmt.Sprintf("group-%d", i))
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range 20 {
			q.namespace = fmt.Sprint(i)
			if allowed, err := r.may(q); !allowed || err != nil {
				t.Fatal(allowed, err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
			t.Errorf("20 questions are remembered in %d bytes", grown)
		}
		runtime.KeepAlive(r)
	})
}
