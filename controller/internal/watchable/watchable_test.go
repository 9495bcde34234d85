// SPDX-License-Identifier: Apache-2.0

package watchable

import (
	"context"
	"errors"
	"testing"
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
	looks, begun := 0, 0
	c := &candidate{
		possible: func(context.Context) (bool, error) { looks++; return answers[looks-1].possible, answers[looks-1].err },
		begin:    func() error { begun++; return nil },
		log:      logr.Discard(), interval: time.Nanosecond,
	}
	if err := c.Start(t.Context()); err != nil || looks != 3 || begun != 1 {
		t.Errorf("%d looks, begun %d times: %v", looks, begun, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	looks, c.interval = 0, time.Hour
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
