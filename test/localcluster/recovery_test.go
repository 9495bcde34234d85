// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// Additional checks for single programs.
var furthermore = map[string]func(*testing.T, cluster) (wantAfterwards func()){
	"kwok":        leasesAreNew,
	"processnode": podsRunAgain,
}

var killedRounds = flag.Int("killed.rounds", 1, "how many times each program is killed")

// The programs come from the cluster's plan, so that a new one is tested automatically.
func TestAProgramThatIsKilledComesBackAndNothingIsLost(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := running(t, m.main())
		wantKept := c.keepObject(t)
		for _, program := range c.plan(t).Programs {
			t.Run(program.Name, func(t *testing.T) {
				for round := range *killedRounds {
					began := time.Now()
					c.comesBack(t, program)
					wantKept(t)
					t.Logf("round %d of %d: %.1f s", round+1, *killedRounds, time.Since(began).Seconds())
				}
			})
		}
	})
}

// comesBack kills a program, and waits until the cluster is healthy again.
func (c cluster) comesBack(t *testing.T, program plan.Program) {
	t.Helper()
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
	wantAfterwards()
}

// leasesAreNew checks that the leases of a killed kwok were replaced. Otherwise the next kwok
// would wait until they expire, after 40 s.
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
			t.Error("the next kwok waited until the leases of the previous one expired")
		}
	}
}

// podsRunAgain checks that a pod of the killed processnode is restarted once.
func podsRunAgain(t *testing.T, c cluster) (wantAfterwards func()) {
	api := c.api(t)
	pod := c.podWithChild(t, api)
	before := processesOf(pod)
	return func() {
		wantRestarted(t, api, pod, before)
		if err := api.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPodWhoseProgramIsKilledIsRestarted(t *testing.T) {
	c := running(t, modes[1].main())
	api := c.api(t)
	pod := c.podWithChild(t, api)
	before := processesOf(pod)
	first, err := strconv.Atoi(parentOf(before[0]))
	if err != nil {
		t.Fatalf("process %s of the pod has ended", before[0])
	}
	seen, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/proc/1/cmdline", first))
	if err != nil || string(seen) != "/workload\x00parent\x00" {
		t.Errorf("in the pod's /proc, process 1 is %q (%v)", seen, err)
	}
	kill(t, first)
	wantRestarted(t, api, pod, before)
	if err := api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// podWithChild returns a running pod whose program has a child process, which gets no
// parent-death signal.
func (c cluster) podWithChild(t *testing.T, api client.Client) *corev1.Pod {
	t.Helper()
	pod := c.processPod(t, api, "parent")
	eventually(t, "a pod runs as a process", func(ctx context.Context) error {
		err := runsOnce(ctx, api, pod)
		if err == nil && len(pod.Status.ContainerStatuses) == 0 {
			err = errors.New("it has no container")
		}
		return err
	})
	return pod
}

// wantRestarted waits until only the restarted pod runs.
func wantRestarted(t *testing.T, api client.Client, pod *corev1.Pod, before []string) {
	t.Helper()
	restarts := pod.Status.ContainerStatuses[0].RestartCount
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
}
