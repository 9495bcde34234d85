// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"slices"
	"testing"
)

func TestDownEndsWhatAKilledUpHasLeft(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := m.second()
		c.mustRun(t, "down")
		for _, name := range []string{
			"a component is built", "the folder is filled", "the folder is there", "the keeper is on record", "the cluster can be used",
		} {
			t.Run(name, func(t *testing.T) {
				if name == "a component is built" {
					forget(t, "etcd")
				}
				c.killedAt(t, upPoint(m, name), c.upFlags()...)
				c.mustRun(t, "down")
				c.wantGone(t)
			})
		}
		t.Run("the keeper starts a program and is killed, too", func(t *testing.T) {
			c.killedAt(t, upPoint(m, "the keeper starts a program"), c.upFlags()...)
			c.killKeeper(t)
			c.mustRun(t, "down")
			c.wantGone(t)
		})
	})
}

func upPoint(m mode, name string) point {
	points := upPoints(m)
	return points[slices.IndexFunc(points, func(p point) bool { return p.name == name })]
}
