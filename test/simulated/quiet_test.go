// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
)

// make test uses the short durations, make test-long the full ones.
var (
	quietNumber = flag.Int("quiet.appwrappers", 60, "how many AppWrappers run while our controller has to be quiet")
	quietTime   = flag.Duration("quiet.for", time.Minute, "for how long it has to be quiet")
)

// restful is how long the controller must send no request on a quiet machine to count as idle.
const restful = 10 * time.Second

// staysQuiet checks that healthy running AppWrappers cause no requests, and that heartbeats of
// nodes cause no reconciles.
func (c *crowd) staysQuiet(p person, metrics *scraper) {
	c.Helper()
	c.create(0, *quietNumber, false, forever)
	c.await(workload.AppWrapperRunning, *quietNumber)
	log := p.audit(c.T)
	await(c.T, "every part of our controller has started", func(context.Context) error { return started(metrics.scrape()) })
	awaitRest(c.T, "our controller", log.ours)
	before := metrics.scrape()
	log.ours()
	c.Logf("%d AppWrappers run; nothing may be asked for %s", *quietNumber, *quietTime)
	select {
	case <-time.After(*quietTime):
	case <-c.Context().Done():
	}
	reopened, offending := 0, 0
	for _, e := range log.ours() {
		if allowed(e) {
			reopened++
			continue
		}
		offending++
		c.Errorf("our controller sent a request: %s", e)
	}
	after := metrics.scrape()
	if n := after[reconciles] - before[reconciles]; n != 0 {
		c.Errorf("it reconciled AppWrappers %.0f times", n)
	}
	c.await(workload.AppWrapperRunning, *quietNumber)
	c.Logf("in %s: %d requests, %.0f reconciles; beside that %d watches were opened again and scrapes reviewed, and the process made %.0f requests in all, with those for its lease",
		*quietTime, offending, after[reconciles]-before[reconciles], reopened, after["rest_client_requests_total"]-before["rest_client_requests_total"])
	c.Logf("resident memory %.0f MiB, processor time %.2f s", after[resident]/(1<<20), after[processor]-before[processor])
	c.clear()
}

// started reports whether no part of the controller still looks for what it wants to watch. It would
// look on during the minute in which nothing may be asked.
func started(metrics map[string]float64) error {
	if n, known := metrics["mlbatch_part_waiting"]; !known || n > 0 {
		return fmt.Errorf("%.0f of them wait, and the metric is there: %t", n, known)
	}
	return nil
}

// awaitRest returns the requests of a controller from before it was at rest.
func awaitRest(t *testing.T, who string, news func() []asked) (before []asked) {
	t.Helper()
	began, enough := time.Now(), patience.For(restful)
	await(t, who+" is at rest", func(context.Context) error {
		for _, e := range news() {
			before = append(before, e)
			if !allowed(e) {
				began = time.Now()
			}
		}
		if at := time.Since(began); at < enough {
			return fmt.Errorf("it has been for %s", at)
		}
		return nil
	})
	return before
}
