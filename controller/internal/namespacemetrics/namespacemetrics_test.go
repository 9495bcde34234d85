// SPDX-License-Identifier: Apache-2.0

package namespacemetrics

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// cluster has the namespaces that still have objects.
type cluster map[string]bool

func (c cluster) empty(namespace string) (bool, error) { return !c[namespace], nil }

// start has counted something in these namespaces. It notes whose series are removed.
func start(now *time.Time, namespaces ...string) (s *Series, removed *[]string) {
	removed = &[]string{}
	s = New(func(namespace string) { *removed = append(*removed, namespace) })
	s.now = func() time.Time { return *now }
	for _, namespace := range namespaces {
		s.Counted(namespace)
	}
	return s, removed
}

func TestSeriesOfNamespacesWithoutObjectsGo(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	s, removed := start(&now, "ci-1", "ci-2", "blue")
	expect := func(when string, want ...string) {
		t.Helper()
		if err := s.forget(cluster{"blue": true}.empty); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, *removed, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	now = now.Add(Kept - time.Second)
	expect("before the time is over")
	s.Counted("ci-2")
	now = now.Add(time.Second)
	expect("when the time is over for ci-1", "ci-1")
	now = now.Add(Kept)
	expect("when it is over for all", "ci-1", "ci-2")
	if len(s.counted) != 1 {
		t.Errorf("what is remembered grows: %v", s.counted)
	}
	s.Counted("ci-1")
	now = now.Add(Kept)
	expect("after ci-1 has come again", "ci-1", "ci-2", "ci-1")
}

// What cannot be listed may be there.
func TestAnErrorForgetsNothing(t *testing.T) {
	now := time.Unix(0, 0)
	s, removed := start(&now, "blue")
	now = now.Add(Kept)
	failed := errors.New("the cache has ended")
	if err := s.forget(func(string) (bool, error) { return true, failed }); !errors.Is(err, failed) || len(*removed) > 0 {
		t.Errorf("%v; removed are the series of %v", err, *removed)
	}
}
