// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"

	"github.com/mlbatch/mlbatch/test/bench"
)

func TestProcessesAreCalledByTheirDeploymentOrProgram(t *testing.T) {
	const pod = "/tmp/cluster/node/pods/5e1c-uid/root/manager"
	for _, test := range []struct{ exe, argv0, environ, want string }{
		{"/root/.cache/mlbatch/components/1/kwok", "/root/.cache/mlbatch/components/1/kwok", "HOSTNAME=a-b-c-d\x00", "kwok"},
		{"/root/.cache/mlbatch/components/2/server", "/root/.cache/mlbatch/components/2/server", "", "etcd"},
		{pod, "/manager", "HOME=/\x00HOSTNAME=kueue-controller-manager-7d9f-x2x4z\x00OLD_HOSTNAME=x\x00", "kueue-controller-manager"},
		{pod, "/manager", "HOSTNAME=appwrapper-controller-manager-7d9f-x2x4z", "appwrapper-controller-manager"},
	} {
		if got := bench.ProcessName(test.exe, test.argv0, test.environ); got != test.want {
			t.Errorf("%s of %q: got %s, want %s", test.exe, test.environ, got, test.want)
		}
	}
}

func TestTheMostMemoryOfAProcess(t *testing.T) {
	if got := bench.MostMemory("Name:\tmanager\nVmPeak:\t  1 kB\nVmHWM:\t   52736 kB\nVmRSS:\t   2 kB\n"); got != 51.5 {
		t.Errorf("got %v MiB, want 51.5", got)
	}
	if got := bench.MostMemory("Name:\tmanager\nState:\tZ (zombie)\n"); got != 0 {
		t.Errorf("a process that has ended takes %v MiB", got)
	}
}
