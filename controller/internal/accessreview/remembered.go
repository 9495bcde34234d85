// SPDX-License-Identifier: Apache-2.0

package accessreview

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kept is how long the right of an author to wrap a kind, or to have AppWrappers, is not asked for again: as
// many jobs of an author often come together. The rights to start work and to name its author are asked
// for each time.
const Kept = 10 * time.Second

// mostRemembered bounds the memory. Who asks about more than that within the time asks again.
const mostRemembered = 4096

// Remembering asks the same question about the same user once in that time, if the answer is yes. A
// refusal is never remembered: whoever is given a right may use it at once. The question is the whole of
// it: the user's name, UID, groups and extra, and what the right is to. So nobody gets the answer of
// another, whoever impersonates whom.
func (r Review) Remembering(keep time.Duration, now func() time.Time) Review {
	m := &memory{until: map[key]time.Time{}}
	return func(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
		question, err := json.Marshal(review.Spec)
		if err != nil {
			return r(ctx, review)
		}
		asked, key := now(), keyOf(question)
		if m.allowed(key, asked) {
			review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
			return nil
		}
		if err := r(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed {
			m.remember(key, asked, keep)
		}
		return nil
	}
}

// Wraps tells whether a user may put a resource into an AppWrapper. Review.MayWrap is one that asks
// each time.
type Wraps func(ctx context.Context, user authenticationv1.UserInfo, namespace string, resource schema.GroupVersionResource) (bool, error)

// WrapsRemembering remembers what Remembering does, whichever verb the right is of. Members of teams
// hold one verb for some kinds and the other for others.
func (r Review) WrapsRemembering(keep time.Duration, now func() time.Time) Wraps {
	m := &memory{until: map[key]time.Time{}}
	return func(ctx context.Context, user authenticationv1.UserInfo, namespace string, resource schema.GroupVersionResource) (bool, error) {
		question, err := json.Marshal([]any{user, namespace, resource})
		if err != nil {
			return r.MayWrap(ctx, user, namespace, resource)
		}
		asked, key := now(), keyOf(question)
		if m.allowed(key, asked) {
			return true, nil
		}
		allowed, err := r.MayWrap(ctx, user, namespace, resource)
		if allowed && err == nil {
			m.remember(key, asked, keep)
		}
		return allowed, err
	}
}

// key stands for a question, which may have hundreds of groups.
type key [sha256.Size]byte

func keyOf(question []byte) key { return sha256.Sum256(question) }

// memory has until when each question is answered with yes.
type memory struct {
	mu    sync.Mutex
	until map[key]time.Time
}

func (m *memory) allowed(question key, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until[question])
}

// remember counts from when the question was asked. A full memory begins anew.
func (m *memory) remember(question key, asked time.Time, keep time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.until) >= mostRemembered {
		clear(m.until)
	}
	m.until[question] = asked.Add(keep)
}
