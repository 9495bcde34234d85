// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTwoClustersSeeNothingOfEachOther(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		a, b := running(t, m.main()), running(t, m.second())
		wantKept, keeper := a.keepObject(t), a.keeper(t)
		a.wantHealthy(t)
		b.wantHealthy(t)
		if got := objectsWithPrefix(t, b, "kept-"); got != 0 {
			t.Errorf("%d objects of one cluster are in the other", got)
		}
		b.endInPieces(t)
		wantKept(t)
		if a.keeper(t) != keeper || !a.described().Running() {
			t.Error("stopping one cluster has stopped the other")
		}
	})
}

// endInPieces stops a cluster with two commands that are killed: one after the keeper is gone,
// one after the programs and the plan are gone.
func (c cluster) endInPieces(t *testing.T) {
	t.Helper()
	for _, gone := range []string{"bin/keeper", "plan.json"} {
		w := c.start(t, "down")
		eventually(t, "down has removed "+gone, func(context.Context) error {
			if exists(inFolder(gone)(c)) {
				return errors.New("it is there")
			}
			return nil
		})
		_ = w.cmd.Process.Kill() // it may have ended already
		_, _ = w.ends()
	}
	c.mustRun(t, "down")
	c.wantGone(t)
}

// objectsWithPrefix counts ConfigMaps.
func objectsWithPrefix(t *testing.T, c cluster, prefix string) (count int) {
	t.Helper()
	all := &corev1.ConfigMapList{}
	if err := c.api(t).List(t.Context(), all, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	for _, object := range all.Items {
		if object.GenerateName == prefix {
			count++
		}
	}
	return count
}
