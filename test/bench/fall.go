// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Pod is what is known of a pod of a job.
type Pod struct {
	Job, UID, Node string
	// Runs: it is neither waiting, nor has it ended, nor is it being deleted.
	Runs bool
}

// Victims are nodes on which pods run, far apart by name: neighbours have pods of the same jobs where nodes are filled
// up one after the other. None has failed before, unless there are too few others.
func Victims(pods []Pod, before map[string]bool, n int) (nodes []string) {
	busy := map[string]bool{}
	for _, p := range pods {
		if p.Runs {
			busy[p.Node] = true
		}
	}
	all := slices.Sorted(maps.Keys(busy))
	if fresh := slices.DeleteFunc(slices.Clone(all), func(node string) bool { return before[node] }); len(fresh) >= n {
		all = fresh
	}
	n = min(n, len(all))
	for i := range n {
		nodes = append(nodes, all[i*len(all)/n])
	}
	return nodes
}

// Fall is one fault of some nodes, and what is seen of the jobs that had pods on them.
type Fall struct {
	mu    sync.Mutex
	each  int             // pods of a job
	nodes map[string]bool // that have failed
	// returns: pods that come later may run on the same nodes, because only the programs have failed.
	returns bool
	jobs    map[string]*hit
}

// hit is what is seen of a job. Times are zero for what has not been seen.
type hit struct {
	at, detected, reset, again time.Time
	old                        map[string]bool // pods that ran at the fault, and run still
	struck                     map[string]bool // of those, the ones on the nodes
	runs                       map[string]bool // pods that run elsewhere, old and new
}

// NewFall is a fault of nodes on which jobs run, each of so many pods. Nothing has happened yet.
func NewFall(each int, nodes []string, returns bool, pods []Pod) *Fall {
	f := &Fall{each: each, nodes: map[string]bool{}, returns: returns, jobs: map[string]*hit{}}
	for _, node := range nodes {
		f.nodes[node] = true
	}
	for _, p := range pods {
		if f.nodes[p.Node] && p.Runs {
			f.jobs[p.Job] = &hit{old: map[string]bool{}, struck: map[string]bool{}, runs: map[string]bool{}}
		}
	}
	for _, p := range pods {
		h := f.jobs[p.Job]
		if h == nil || !p.Runs {
			continue
		}
		h.old[p.UID] = true
		if f.nodes[p.Node] {
			h.struck[p.UID] = true
		} else {
			h.runs[p.UID] = true
		}
	}
	return f
}

// Jobs are those that are hit, by name.
func (f *Fall) Jobs() []string { return slices.Sorted(maps.Keys(f.jobs)) }

// Hit begins the time of a job, if it has not begun.
func (f *Fall) Hit(job string, at time.Time) {
	f.of(job, func(h *hit) { first(&h.at, at) })
}

// Detect notes that the controller has said that something is wrong with a job.
func (f *Fall) Detect(job string, at time.Time) {
	f.of(job, func(h *hit) {
		if !h.at.IsZero() {
			first(&h.detected, at)
		}
	})
}

// Hear hears of a pod that has changed, or is gone.
func (f *Fall) Hear(p Pod, gone bool, at time.Time) {
	f.of(p.Job, func(h *hit) {
		h.hear(p.UID, p.Runs && !gone, f.returns || !f.nodes[p.Node])
		if h.at.IsZero() {
			return
		}
		if len(h.old) == 0 {
			first(&h.reset, at)
		}
		if len(h.struck) == 0 && len(h.runs) >= f.each {
			first(&h.again, at)
		}
	})
}

func (h *hit) hear(uid string, runs, elsewhere bool) {
	if !runs {
		delete(h.old, uid)
		delete(h.struck, uid)
		delete(h.runs, uid)
		return
	}
	if elsewhere && !h.struck[uid] {
		h.runs[uid] = true
	}
}

// of does something with a job, if it is hit.
func (f *Fall) of(job string, do func(*hit)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.jobs[job]; h != nil {
		do(h)
	}
}

func first(t *time.Time, at time.Time) {
	if t.IsZero() {
		*t = at
	}
}

// Late is how many jobs do not run again.
func (f *Fall) Late() (late int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.jobs {
		if h.again.IsZero() {
			late++
		}
	}
	return late
}

// Reaction sums up what was seen.
func (f *Fall) Reaction(by, fault string) Reaction {
	late := f.Late()
	f.mu.Lock()
	defer f.mu.Unlock()
	took := func(when func(*hit) time.Time) Quantiles {
		var all []time.Duration
		for _, h := range f.jobs {
			if t := when(h); !t.IsZero() {
				all = append(all, t.Sub(h.at))
			}
		}
		return QuantilesOf(all)
	}
	return Reaction{
		By: by, Fault: fault, Nodes: len(f.nodes), Jobs: len(f.jobs), Late: late,
		Detected: took(func(h *hit) time.Time { return h.detected }), Reset: took(func(h *hit) time.Time { return h.reset }),
		Again: took(func(h *hit) time.Time { return h.again }),
	}
}
