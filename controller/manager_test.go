// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/mlbatch/mlbatch/controller/internal/config"
)

// If the Lease is not released, the next controller waits until it expires.
func TestTheLeaseIsReleasedAtTheEnd(t *testing.T) {
	c := config.Default()
	c.ControllerManager.LeaderElection = true
	options, err := managerOptions(c, "mlbatch-system")
	if err != nil {
		t.Fatal(err)
	}
	if !options.LeaderElection || options.LeaderElectionNamespace != "mlbatch-system" || options.LeaderElectionID != leaderElectionID {
		t.Errorf("leader election uses the Lease %s/%s: %t", options.LeaderElectionNamespace, options.LeaderElectionID, options.LeaderElection)
	}
	if !options.LeaderElectionReleaseOnCancel {
		t.Error("it does not release the Lease at the end")
	}
}

// Decoding what they watch is most of what caches do.
func TestWatchesAreDecodedInOneGo(t *testing.T) {
	options, err := managerOptions(config.Default(), "mlbatch-system")
	if err != nil {
		t.Fatal(err)
	}
	if options.NewCache == nil {
		t.Error("the caches are the usual ones")
	}
}
