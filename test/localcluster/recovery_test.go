// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What has to be told about one program beside what holds for all.
var furthermore = map[string]func(*testing.T, cluster) (wantAfterwards func()){
	"kwok":        leasesAreNew,
	"processnode": podsRunAgain,
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

// podsRunAgain looks at a pod that the killed node has run: it is started anew, once.
func podsRunAgain(t *testing.T, c cluster) (wantAfterwards func()) {
	api := c.api(t)
	pod := c.processPod(t, api)
	eventually(t, "a pod runs as a process", func(ctx context.Context) error {
		err := runsOnce(ctx, api, pod)
		if err == nil && len(pod.Status.ContainerStatuses) == 0 {
			err = errors.New("it has no container")
		}
		return err
	})
	before, restarts := processesOf(pod), pod.Status.ContainerStatuses[0].RestartCount
	return func() {
		eventually(t, "the pod runs again", func(ctx context.Context) error {
			if err := runsOnce(ctx, api, pod); err != nil {
				return err
			}
			now, again := processesOf(pod), pod.Status.ContainerStatuses[0].RestartCount
			if slices.Equal(now, before) || again != restarts+1 {
				return fmt.Errorf("its processes are %v, %v before; its restarts are %d, %d before", now, before, again, restarts)
			}
			return nil
		})
		if err := api.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
}
