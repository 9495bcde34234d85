// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"hash/fnv"
	"time"
)

// within is a time to stop for each job, which is always the same.
func within(longest time.Duration) func(string) time.Duration {
	return func(job string) time.Duration {
		h := fnv.New32()
		h.Write([]byte(job))
		return time.Duration(h.Sum32()%uint32(longest/time.Second+1)) * time.Second
	}
}

func exactly(d time.Duration) func(string) time.Duration {
	return func(string) time.Duration { return d }
}
