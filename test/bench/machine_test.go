// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"testing"

	"github.com/mlbatch/mlbatch/test/bench"
)

func TestAMachineIsDescribed(t *testing.T) {
	cpuinfo := "processor\t: 0\nmodel name\t: Made Up 9000\ncache size\t: 1 KB\n\nprocessor\t: 1\nmodel name\t: Made Up 9000\n"
	if got, want := bench.Machine(cpuinfo, "MemTotal:       24609792 kB\nMemFree: 1 kB\n", "6.1.0-40-amd64\n"), "2 cores of Made Up 9000, 23 GiB, Linux 6.1.0-40-amd64"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := bench.Machine("processor\t: 0\n", "", "6.1"), "1 core, unknown memory, Linux 6.1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
