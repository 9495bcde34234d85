// SPDX-License-Identifier: Apache-2.0

// Command print writes the random clusters of some seeds as JSON, so that others can play them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/tools/artifacts/components/kueue/preemption"
)

// printed is a cluster without the functions that say how its jobs behave.
type printed struct {
	Seed    uint64
	Cohorts []queue.Cohort
	Queues  []queue.ClusterQueue
	Jobs    []preemption.Job
}

func main() {
	var clusters []printed
	for _, arg := range os.Args[1:] {
		seed, err := strconv.ParseUint(arg, 10, 64)
		if err != nil {
			fail(fmt.Errorf("a seed is a number: %w", err))
		}
		c := preemption.Random(seed)
		clusters = append(clusters, printed{seed, c.Cohorts, c.Queues, c.Jobs})
	}
	if err := json.NewEncoder(os.Stdout).Encode(clusters); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "print:", err)
	os.Exit(1)
}
