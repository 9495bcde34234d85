// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// slowReader answers with what a namespace is when a reading begins, once it is told to.
type slowReader struct {
	is     string
	begun  []string
	resume chan struct{}
	broken error
}

func (s *slowReader) read(ctx context.Context, name string) namespace {
	is := s.is
	s.begun = append(s.begun, name)
	select {
	case <-s.resume:
		return namespace{labels: map[string]string{"is": is}, unread: s.broken}
	case <-ctx.Done():
		return namespace{unread: context.Cause(ctx)}
	}
}

// ask asks in the background, and returns what was answered once all wait or have ended.
func ask(ctx context.Context, read readNamespace, name string) (answer *namespace) {
	answer = &namespace{}
	go func() { *answer = read(ctx, name) }()
	synctest.Wait()
	return answer
}

func (s *slowReader) goOn() {
	s.resume <- struct{}{}
	synctest.Wait()
}

// What is refused depends on the namespace as it is when the request comes, or later.
func TestNobodyIsAnsweredWithWhatWasReadBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowReader{is: "1", resume: make(chan struct{})}
		read := together(s.read)
		a := ask(t.Context(), read, "blue")
		s.is = "2"
		b, c := ask(t.Context(), read, "blue"), ask(t.Context(), read, "blue")
		red := ask(t.Context(), read, "red") // which waits for nobody
		if diff := cmp.Diff([]string{"blue", "red"}, s.begun); diff != "" {
			t.Fatalf("the readings (-want +got)\n%s", diff)
		}
		s.goOn()
		s.goOn()
		s.is = "3"
		d := ask(t.Context(), read, "blue")
		s.goOn()
		s.goOn()
		for name, tc := range map[string]struct {
			got  *namespace
			want string
		}{"the first": {a, "1"}, "one while it is read": {b, "2"}, "another": {c, "2"}, "of another namespace": {red, "2"}, "one while it is read again": {d, "3"}} {
			if got := tc.got.labels["is"]; got != tc.want {
				t.Errorf("%s is told %q, want %q", name, got, tc.want)
			}
		}
		if diff := cmp.Diff([]string{"blue", "red", "blue", "blue"}, s.begun); diff != "" {
			t.Errorf("the readings (-want +got)\n%s", diff)
		}
	})
}

// Who gives up or fails does it alone.
func TestOneRequestDoesNotEndTheReadingOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowReader{is: "1", resume: make(chan struct{})}
		read := together(s.read)
		impatient, giveUp := context.WithCancel(t.Context())
		first, second, third := ask(impatient, read, "blue"), ask(impatient, read, "blue"), ask(t.Context(), read, "blue")
		giveUp()
		synctest.Wait()
		if !errors.Is(first.unread, context.Canceled) || !errors.Is(second.unread, context.Canceled) {
			t.Errorf("those who gave up are told %v and %v", first, second)
		}
		s.goOn()
		if third.unread != nil || third.labels["is"] != "1" {
			t.Errorf("who waits is told %v", third)
		}
	})
}

func TestAReadingThatFailsIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowReader{is: "1", resume: make(chan struct{}), broken: errors.New("away")}
		read := together(s.read)
		first, second := ask(t.Context(), read, "blue"), ask(t.Context(), read, "blue")
		s.goOn()
		s.goOn()
		s.broken = nil
		third := ask(t.Context(), read, "blue")
		s.goOn()
		if first.unread == nil || second.unread == nil || third.unread != nil {
			t.Errorf("they are told %v, %v and %v", first, second, third)
		}
	})
}

// A namespace that nobody reads takes no memory.
func TestOnlyWhatIsReadIsRemembered(t *testing.T) {
	r := &readings{read: func(context.Context, string) namespace { return namespace{} }, next: map[string]*reading{}}
	for range 3 {
		r.get(t.Context(), "blue")
	}
	if len(r.next) > 0 {
		t.Errorf("remembers %v", r.next)
	}
}
