// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// blocks are what a file of a size takes. The kubelet counts so, too, and would evict the pod.
func blocks(size int64) int64 {
	if size > math.MaxInt64-block { // no server has that much, but one may say so
		return math.MaxInt64
	}
	return max(block, (size+block-1)/block*block)
}

// space is how much of the volume is taken, and what is copied.
type space struct {
	limit int64

	lock          sync.Mutex
	taken         int64
	objects, size int64
}

// take fails if there is no room for that much more.
func (s *space) take(size int64) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if size > s.limit-s.taken {
		return fmt.Errorf("the objects have more than %s: raise s3.copyLimit of the DataSet, or narrow its prefix", bytes(s.limit))
	}
	s.taken += size
	return nil
}

// done counts a file.
func (s *space) done(size int64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.objects++
	s.size += size
}

// String says what is copied.
func (s *space) String() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	noun := "objects"
	if s.objects == 1 {
		noun = "object"
	}
	return fmt.Sprintf("%d %s, %s", s.objects, noun, bytes(s.size))
}

// bytes writes a size as manifests do, rounded down to Ki or Mi from 10 of them.
func bytes(size int64) string {
	for _, unit := range []int64{1 << 20, 1 << 10} {
		if size >= 10*unit {
			size -= size % unit
			break
		}
	}
	return resource.NewQuantity(size, resource.BinarySI).String()
}

// report writes a line of progress from time to time, until it is stopped.
func (c *copying) report(log io.Writer) (stop func()) {
	ticker := time.NewTicker(every)
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(log, "copied %s so far\n", c.space)
			case <-stopped:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(stopped)
		<-ended
	}
}
