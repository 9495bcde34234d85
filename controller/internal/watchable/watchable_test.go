// SPDX-License-Identifier: Apache-2.0

package watchable

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kueue may be installed later, and rights may be missing. Neither ends the process.
func TestItWaits(t *testing.T) {
	answers := []struct {
		possible bool
		err      error
	}{{false, nil}, {false, errors.New("no answer")}, {true, nil}}
	looks, begun, waits := 0, 0, []bool(nil)
	c := &candidate{
		possible: func(context.Context) (bool, error) { looks++; return answers[looks-1].possible, answers[looks-1].err },
		begin:    func() error { begun++; return nil },
		log:      logr.Discard(), pause: time.Nanosecond, waits: func(w bool) { waits = append(waits, w) },
	}
	if err := c.Start(t.Context()); err != nil || looks != 3 || begun != 1 {
		t.Errorf("%d looks, begun %d times: %v", looks, begun, err)
	}
	if !slices.Equal(waits, []bool{true, false}) {
		t.Errorf("whether it waits was reported as %v", waits)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	looks, c.pause = 0, time.Hour
	if err := c.Start(stopped); err != nil || begun != 1 {
		t.Errorf("at the end of the process, begun %d times: %v", begun, err)
	}
}

func TestItIsPossibleWithEverythingThatIsNeeded(t *testing.T) {
	group := schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
	served := meta.NewDefaultRESTMapper(nil)
	served.Add(group.WithKind("Workload"), meta.RESTScopeNamespace)
	served.Add(group.WithKind("ClusterQueue"), meta.RESTScopeRoot)
	half := meta.NewDefaultRESTMapper(nil)
	half.Add(group.WithKind("Workload"), meta.RESTScopeNamespace)
	for name, row := range map[string]struct {
		mapper meta.RESTMapper
		denied string
		want   bool
	}{
		"it is":               {served, "", true},
		"without Kueue":       {meta.NewDefaultRESTMapper(nil), "", false},
		"without one of both": {half, "", false},
		"without get":         {served, "get workloads", false},
		"without list":        {served, "list clusterqueues", false},
		"a right not needed":  {served, "get clusterqueues", true},
	} {
		allowed := func(_ context.Context, verb string, of schema.GroupVersionResource) (bool, error) {
			return verb+" "+of.Resource != row.denied, nil
		}
		got, err := possible(t.Context(), row.mapper, allowed, []Needed{
			{group.WithResource("workloads"), []string{"get", "list", "watch"}}, {group.WithResource("clusterqueues"), []string{"list", "watch"}},
		})
		if got != row.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

// A platform that is installed at once is complete within seconds; Kueue may also never come.
func TestItLooksOftenAtFirstAndThenRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks []time.Duration
		begin := time.Now()
		c := &candidate{
			possible: func(context.Context) (bool, error) {
				looks = append(looks, time.Since(begin))
				return len(looks) == 8, nil
			},
			begin: func() error { return nil }, log: logr.Discard(), pause: firstPause, waits: func(bool) {},
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 1, 3, 7, 15, 31, 61, 91}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(looks, want) {
			t.Errorf("it looked after %v, not %v", looks, want)
		}
	})
}

// A part that cannot begin ends the process: nobody is told that it has begun.
func TestWhatCannotBeginStillWaits(t *testing.T) {
	waits, broken := false, errors.New("broken")
	c := &candidate{
		possible: func(context.Context) (bool, error) { return true, nil },
		begin:    func() error { return broken }, log: logr.Discard(), waits: func(w bool) { waits = w },
	}
	if err := c.Start(t.Context()); !errors.Is(err, broken) || !waits {
		t.Errorf("it waits: %t, %v", waits, err)
	}
}
