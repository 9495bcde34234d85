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

// reviewer answers and counts questions, and can be asked through a memory with its own clock.
type reviewer struct {
	allows bool
	err    error
	asked  int
	now    time.Time
	may    Review
}

func newReviewer() *reviewer {
	r := &reviewer{allows: true, now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	r.may = Review(func(_ context.Context, review *authorizationv1.SubjectAccessReview) error {
		r.asked++
		review.Status.Allowed = r.allows
		return r.err
	}).Remembering(10*time.Second, func() time.Time { return r.now })
	return r
}

func ada() authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: "ada", UID: "u-1", Groups: []string{"team"},
		Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	}
}

func TestAYesIsRememberedForAWhile(t *testing.T) {
	r := newReviewer()
	for _, tc := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {0, 1}, {9999 * time.Millisecond, 1}, {time.Millisecond, 2}, {9 * time.Second, 2}} {
		r.now = r.now.Add(tc.after)
		allowed, err := r.may.Allows(t.Context(), ada(), "blue", "create", jobs)
		if err != nil || !allowed || r.asked != tc.asked {
			t.Errorf("after %s: allowed %t, %v, asked %d times, want %d", tc.after, allowed, err, r.asked, tc.asked)
		}
	}
}

func TestANoIsNotRemembered(t *testing.T) {
	r := newReviewer()
	r.allows = false
	if allowed, _ := r.may.Allows(t.Context(), ada(), "blue", "create", jobs); allowed {
		t.Error("allowed what is not")
	}
	r.allows = true
	if allowed, _ := r.may.Allows(t.Context(), ada(), "blue", "create", jobs); !allowed {
		t.Error("a right that was just given does not count")
	}
}

func TestAReviewThatFailsIsNotRemembered(t *testing.T) {
	r := newReviewer()
	r.err = errors.New("the API server is away")
	for range 2 {
		if allowed, err := r.may.Allows(t.Context(), ada(), "blue", "create", jobs); allowed || !errors.Is(err, r.err) {
			t.Errorf("got %t and %v", allowed, err)
		}
	}
	if r.asked != 2 {
		t.Errorf("asked %d times", r.asked)
	}
}

// Nothing gets past by impersonation: whoever differs in anything is asked about.
func TestNobodyGetsTheAnswerOfAnother(t *testing.T) {
	type question struct {
		user            authenticationv1.UserInfo
		namespace, verb string
		resource        schema.GroupVersionResource
	}
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
		"another verb":         func(q *question) { q.verb = "wrap" },
		"another group of it":  func(q *question) { q.resource.Group = "example.com" },
		"another version":      func(q *question) { q.resource.Version = "v2" },
		"another resource":     func(q *question) { q.resource.Resource = "pods" },
	}
	for what, differ := range others {
		r := newReviewer()
		q := question{ada(), "blue", "create", jobs}
		if allowed, err := r.may.Allows(t.Context(), q.user, q.namespace, q.verb, q.resource); !allowed || err != nil {
			t.Fatal(allowed, err)
		}
		differ(&q)
		r.allows = false
		if allowed, _ := r.may.Allows(t.Context(), q.user, q.namespace, q.verb, q.resource); allowed {
			t.Errorf("%s: allowed without being asked about", what)
		}
	}
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
	r := newReviewer()
	user := ada()
	for i := range 20_000 {
		user.Groups = append(user.Groups, fmt.Sprintf("group-%d", i))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 20 {
		if allowed, err := r.may.Allows(t.Context(), user, fmt.Sprint(i), "create", jobs); !allowed || err != nil {
			t.Fatal(allowed, err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("20 questions are remembered in %d bytes", grown)
	}
	runtime.KeepAlive(r)
}
