// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
)

// questionOfUsage is what mlbatch usage --prometheus asks, as docs/commands-admin.md has it.
func questionOfUsage(t *testing.T) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, root+"docs/commands-admin.md"), "<!-- increase: ")
	_, rest, _ = strings.Cut(rest, "```\n")
	question, _, found := strings.Cut(rest, "\n```")
	if !found || question == "" {
		t.Fatal("docs/commands-admin.md has no question for Prometheus")
	}
	return question
}

// of is a series of a week, with a sample each ten minutes. The first is before the week. All series have it,
// because the storage takes no sample from before the first of all.
func of(labels, samples string) string {
	return fmt.Sprintf("appwrapper_usage_device_seconds_total{namespace=\"blue\",resource=\"nvidia.com/gpu\",class=\"Useful\",%s} %s", labels, samples)
}

// What docs/commands-admin.md says of restarts, replicas and extrapolation.
func TestHoursAreWhatCountersHaveGrown(t *testing.T) {
	for sentence, row := range map[string]struct {
		series []string
		want   float64
	}{
		"two attempts end":                     {[]string{of(`pod="a"`, "0x300 3600x300 5400x406")}, 5400},
		"the process restarts":                 {[]string{of(`pod="a"`, "0x300 3600x300 0x100 1800x305")}, 5400},
		"another replica leads":                {[]string{of(`pod="a"`, "0x300 3600x300 stale"), of(`pod="b"`, "0 stale _x603 0x100 1800x302")}, 5400},
		"one that stands by":                   {[]string{of(`pod="a"`, "0x300 3600x707"), of(`pod="b"`, "0x1008")}, 3600},
		"much was counted before":              {[]string{of(`pod="a"`, "720000x300 723600x707")}, 3600},
		"nothing since then":                   {[]string{of(`pod="a"`, "720000x1008")}, 0},
		"hours before the first scrape":        {[]string{of(`pod="a"`, "0 stale _x300 3600x300 5400x405")}, 1800},
		"scraped twice":                        {[]string{of(`job="x"`, "0x300 3600x707"), of(`job="y"`, "0x300 3600x707")}, 7200},
		"hours that come with each scrape":     {[]string{of(`pod="a"`, "0+60x1008")}, 60 * 1008},
		"and go on since long before the week": {[]string{of(`pod="a"`, "90000+60x1008")}, 60 * 1008},
	} {
		t.Run(sentence, func(t *testing.T) {
			storage := promqltest.LoadedStorage(t, "load 10m\n  "+strings.Join(row.series, "\n  "))
			engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 100000)
			query, err := engine.NewInstantQuery(context.Background(), storage, nil, questionOfUsage(t), time.Unix(0, 0).Add(7*24*time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			defer query.Close()
			found, err := query.Exec(context.Background()).Vector()
			if err != nil || len(found) != 1 {
				t.Fatalf("got %v, %v", found, err)
			}
			if got := found[0].F; math.Abs(got-row.want) > row.want/100 {
				t.Errorf("it counts %v s, want %v", got, row.want)
			}
			if labels := found[0].Metric.Map(); len(labels) != 3 || labels["namespace"] != "blue" || labels["class"] != "Useful" || labels["resource"] != "nvidia.com/gpu" {
				t.Errorf("it has the labels %v", labels)
			}
		})
	}
}
