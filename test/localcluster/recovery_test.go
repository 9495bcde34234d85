// SPDX-License-Identifier: Apache-2.0

package localcluster_test

import (
	"context"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What has to be told about one program beside what holds for all.
var furthermore = map[string]func(*testing.T, cluster) (wantAfterwards func()){
	"kwok": leasesAreNew,
}

// The plan is the table: a new program is covered by itself.
func TestAProgramThatIsKilledComesBackAndNothingIsLost(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := running(t, m.main())
		wantKept := c.keepObject(t)
		for _, program := range c.plan(t).Programs {
			t.Run(program.Name, func(t *testing.T) {
				wantAfterwards := func() {}
				if more, told := furthermore[program.Name]; told {
					wantAfterwards = more(t, c)
				}
				restarts := c.status(t).Restarts[program.Name]
				kill(t, c.pidOf(t, program))
				eventually(t, "the keeper counts a restart", func(context.Context) error {
					if got := c.status(t).Restarts[program.Name]; got <= restarts { // it may also have failed to start
						return fmt.Errorf("it says %d, as before", got)
					}
					return nil
				})
				c.wantHealthy(t)
				wantKept(t)
				wantAfterwards()
			})
		}
	})
}

// leasesAreNew looks at what a killed kwok leaves, and waits for: the next one
// would take the nodes over when they run out, after 40 s.
func leasesAreNew(t *testing.T, c cluster) (wantAfterwards func()) {
	key := client.ObjectKey{Namespace: "kube-node-lease", Name: "gpu-0"}
	before, after := &coordinationv1.Lease{}, &coordinationv1.Lease{}
	if err := c.api(t).Get(t.Context(), key, before); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := c.api(t).Get(t.Context(), key, after); err != nil {
			t.Fatal(err)
		}
		if after.UID == before.UID {
			t.Error("the next kwok has waited until the leases of the one before ran out")
		}
	}
}
