// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/mlbatch/mlbatch/setup"
)

// Head says what was measured, when and where.
type Head struct {
	Date     string `json:"date"`
	Commit   string `json:"commit"`
	Machine  string `json:"machine"`
	Versions string `json:"versions"`
	// Note is what else a reader has to know, written by hand.
	Note string `json:"note,omitempty"`
}

// Here is the head of what is measured now, on this machine, on a simulated cluster. It reads /proc.
func Here(commit string) (Head, error) {
	versions, err := setup.Load()
	if err != nil {
		return Head{}, err
	}
	var texts [3]string
	for i, file := range []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/sys/kernel/osrelease"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return Head{}, fmt.Errorf("cannot describe this machine: %w", err)
		}
		texts[i] = string(text)
	}
	local := versions.LocalCluster
	return Head{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: commit, Machine: Machine(texts[0], texts[1], texts[2]),
		Versions: fmt.Sprintf("Kubernetes %s, etcd %s, KWOK %s, Kueue %s, JobSet %s, %s",
			local.Kubernetes, local.Etcd, local.KWOK, versions.Platform["kueue"].Version, versions.Platform["jobset"].Version, runtime.Version()),
	}, nil
}

// String says what was measured, when and where, in a sentence.
func (h Head) String() string {
	return fmt.Sprintf("Measured on %s at commit `%s`: %s, %s.", h.Date, h.Commit, h.Machine, h.Versions)
}
