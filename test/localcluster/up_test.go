// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package localcluster_test

import (
	"fmt"
	"net"
	"strconv"
	"testing"
)

func TestUpOfARunningClusterChangesNothing(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := running(t, m.main())
		wantKept, keeper := c.keepObject(t), c.keeper(t)
		for name, flags := range map[string][]string{
			"the same flags": c.upFlags(), "no flags": {"up"}, "one of them": {"up", "--simulated-nodes=2"},
		} {
			t.Run(name, func(t *testing.T) {
				c.mustRun(t, flags...)
				wantKept(t)
			})
		}
		for name, refused := range map[string]struct{ flag, want string }{
			"another port":            {"--port=1", fmt.Sprintf("runs with --port=%d, not 1", c.port)},
			"another number of nodes": {"--simulated-nodes=3", "runs with --simulated-nodes=2, not 3"},
		} {
			t.Run(name, func(t *testing.T) { c.wantRefusal(t, refused.want, "up", refused.flag) })
		}
		wantKept(t)
		if c.keeper(t) != keeper {
			t.Error("the keeper was replaced")
		}
	})
}

func TestAPortThatIsTakenIsRefusedBeforeAnythingStarts(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := m.second()
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(c.port))
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		c.wantRefusal(t, fmt.Sprintf("port %d on 127.0.0.1 is in use", c.port), c.upFlags()...)
		if c.described().Running() {
			t.Error("the cluster was started")
		}
	})
}

func TestASecondCommandIsToldWhoIsFirst(t *testing.T) {
	inEachMode(t, func(t *testing.T, m mode) {
		c := running(t, m.main())
		first := c.start(t, "up")
		first.reaches(t, c, point{name: "it is under way", line: "is running"})
		for _, second := range []string{"up", "down"} {
			c.wantRefusal(t, fmt.Sprintf("cluster %q is being changed by process %d; wait until that command ends", c.name, first.cmd.Process.Pid), second)
		}
		if said, err := first.ends(); err != nil {
			t.Errorf("the first command failed: %v\n%s", err, said)
		}
	})
}
