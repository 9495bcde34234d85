// SPDX-License-Identifier: Apache-2.0

package slackqueue

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/internal/slackquota"
)

// report has the latest figures. Only the leader has any.
type report struct {
	latest atomic.Pointer[map[kueue.ResourceFlavorReference]map[corev1.ResourceName]slackquota.Figures]
}

// register makes a gauge of each figure. Of the labels, flavors and resources are those that
// administrators gave quota, and causes a closed set.
func (r *report) register(registry prometheus.Registerer) error {
	return errors.Join(
		registry.Register(r.gauge("total", "What the nodes of a flavor had of a resource while they were healthy.", func(f slackquota.Figures) resource.Quantity { return f.Total })),
		registry.Register(r.gauge("usable", "What pods can get of it.", func(f slackquota.Figures) resource.Quantity { return f.Usable })),
		registry.Register(r.unusable()),
		registry.Register(r.gauge("quota", "The nominal quota of all ClusterQueues.", func(f slackquota.Figures) resource.Quantity { return f.Quota })),
		registry.Register(r.gauge("slack", "The part of it that belongs to slack queues.", func(f slackquota.Figures) resource.Quantity { return f.Slack })),
		registry.Register(r.gauge("lent", "What slack queues lend at most.", func(f slackquota.Figures) resource.Quantity { return f.Lent })),
	)
}

// figure is a gauge of each flavor and resource.
type figure struct {
	*report
	is *prometheus.Desc
	of func(f slackquota.Figures, say func(q resource.Quantity, more ...string))
}

func (r *report) gauge(name, help string, of func(slackquota.Figures) resource.Quantity) figure {
	return figure{r, described(name, help), func(f slackquota.Figures, say func(resource.Quantity, ...string)) { say(of(f)) }}
}

// unusable has all causes, so that none is missing while it takes nothing.
func (r *report) unusable() figure {
	return figure{r, described("unusable", "What they cannot get, by the first cause that applies.", "cause"), func(f slackquota.Figures, say func(resource.Quantity, ...string)) {
		for _, cause := range slackquota.Causes() {
			say(f.Unusable[cause], string(cause))
		}
	}}
}

func described(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("mlbatch_flavor_"+name, help, append([]string{"flavor", "resource"}, more...), nil)
}

// Describe is of prometheus.Collector.
func (f figure) Describe(out chan<- *prometheus.Desc) { out <- f.is }

// Collect has nothing before the first look.
func (f figure) Collect(out chan<- prometheus.Metric) {
	latest := f.latest.Load()
	if latest == nil {
		return
	}
	for flavor, byResource := range *latest {
		for name, figures := range byResource {
			f.of(figures, func(q resource.Quantity, more ...string) {
				labels := append([]string{string(flavor), string(name)}, more...)
				out <- prometheus.MustNewConstMetric(f.is, prometheus.GaugeValue, q.AsApproximateFloat64(), labels...)
			})
		}
	}
}
