// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestANamespaceIsReadOnceInAWhile(t *testing.T) {
	now, reads := time.Unix(1_000_000, 0), 0
	var failure error
	read := recently(func(_ context.Context, name string) namespace {
		reads++
		return namespace{annotations: map[string]string{"of": name}, unread: failure}
	}, 10*time.Second, func() time.Time { return now })
	for _, step := range []struct {
		name  string
		after time.Duration
		fails error
		reads int
	}{
		{"blue", 0, errors.New("no answer"), 1}, {"blue", 0, nil, 2}, {"blue", 9 * time.Second, nil, 2},
		{"red", 0, nil, 3}, {"blue", time.Second, nil, 4}, {"red", 8 * time.Second, nil, 4},
	} {
		now, failure = now.Add(step.after), step.fails
		got := read(t.Context(), step.name)
		if got.annotations["of"] != step.name || !errors.Is(got.unread, step.fails) {
			t.Errorf("%s: %+v", step.name, got)
		}
		if reads != step.reads {
			t.Errorf("%s: %d reads, want %d", step.name, reads, step.reads)
		}
	}
}
