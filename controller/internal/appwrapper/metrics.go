// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// metrics count what has happened, once it has been saved, and measure it by the times
// in the status: what began under another leader is measured whole. Of every label the
// values are a closed set; but for the namespaces of appwrapper_phase_total, which
// dashboards know from other AppWrapper controllers.
type metrics struct {
	phases      *prometheus.CounterVec
	transitions *prometheus.CounterVec
	inPhase     *prometheus.HistogramVec
	created     prometheus.Histogram
	ready       prometheus.Histogram
	resets      *prometheus.CounterVec
	refusals    *prometheus.CounterVec
}

// The waits that histograms tell apart, in seconds. The times in a status are whole
// seconds, so shorter ones mean nothing.
var (
	startBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800}
	phaseBuckets = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 168 * 3600}
)

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		phases: counter("appwrapper_phase_total", "Number of times that an AppWrapper entered a phase.", "namespace", "phase"),
		transitions: counter("appwrapper_transitions_total",
			"Number of moves from one phase to another, by the causes that docs/lifecycle.md lists.", "from", "to", "cause"),
		inPhase: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "appwrapper_phase_duration_seconds", Help: "How long AppWrappers were in a phase that they have left.", Buckets: phaseBuckets,
		}, []string{"phase"}),
		created: histogram("appwrapper_unsuspend_to_created_seconds",
			"From when the controller saw that quota was given until all components existed; first attempts only."),
		ready: histogram("appwrapper_unsuspend_to_ready_seconds",
			"From when the controller saw that quota was given until enough pods were running; first attempts only."),
		resets: counter("appwrapper_resets_total",
			"Number of times that the components were removed to be tried again, by the reason of the condition Unhealthy.", "cause"),
		refusals: counter("appwrapper_creation_failures_total",
			"Number of times that a component could not be created, by the API server's reason or the controller's own.", "reason"),
	}
	for _, c := range m.all() {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	m.beginAtZero()
	return m, nil
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: startBuckets})
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.phases, m.transitions, m.inPhase, m.created, m.ready, m.resets, m.refusals}
}

// beginAtZero shows what alerts ask for before it first happens: Prometheus sees no
// increase in a series that begins at 1.
func (m *metrics) beginAtZero() {
	for _, cause := range append(resetCauses, other) {
		m.resets.WithLabelValues(cause)
	}
	for _, reason := range append(refusalReasons, other) {
		m.refusals.WithLabelValues(reason)
	}
}

// other is what a label says instead of a value that is not in its set.
const other = "Other"

func among(set []string, value string) string {
	if slices.Contains(set, value) {
		return value
	}
	return other
}

// phaseNames are the values of labels that name a phase. A status may have others, for
// whoever may write it may write anything.
var phaseNames = []string{
	noPhase, string(v1beta2.AppWrapperSuspended), string(v1beta2.AppWrapperResuming), string(v1beta2.AppWrapperRunning),
	string(v1beta2.AppWrapperResetting), string(v1beta2.AppWrapperSuspending), string(v1beta2.AppWrapperSucceeded),
	string(v1beta2.AppWrapperFailed), string(v1beta2.AppWrapperTerminating),
}

const noPhase = "(none)"

func phaseName(phase v1beta2.AppWrapperPhase) string {
	if phase == v1beta2.AppWrapperEmpty {
		return noPhase
	}
	return among(phaseNames, string(phase))
}

// resetCauses are the reasons of Unhealthy for which there is another attempt.
var resetCauses = []string{
	v1beta2.ReasonCreateFailed, v1beta2.ReasonFailedComponent, v1beta2.ReasonFoundFailedPods,
	v1beta2.ReasonInsufficientPodsReady, v1beta2.ReasonAutopilotNoExecute,
}

// refusalReasons are why a component was not created: our own, and those with which the
// API server answers a create. What a webhook gives as its reason may be any text.
var refusalReasons = []string{
	causeTemplate, causeOccupied, causeGoing, causeNoKind, causePermission, causeScope,
	string(metav1.StatusReasonUnauthorized), string(metav1.StatusReasonForbidden), string(metav1.StatusReasonNotFound),
	string(metav1.StatusReasonConflict), string(metav1.StatusReasonInvalid), string(metav1.StatusReasonBadRequest),
	string(metav1.StatusReasonServerTimeout), string(metav1.StatusReasonTimeout), string(metav1.StatusReasonTooManyRequests),
	string(metav1.StatusReasonInternalError), string(metav1.StatusReasonServiceUnavailable),
	string(metav1.StatusReasonMethodNotAllowed), string(metav1.StatusReasonRequestEntityTooLarge),
}

func (m *metrics) refused(r *refusal) {
	m.refusals.WithLabelValues(among(refusalReasons, r.cause)).Inc()
}

// changed counts what the decision d has made of the status that was observed.
func (m *metrics) changed(aw *v1beta2.AppWrapper, before v1beta2.AppWrapperStatus, d lifecycle.Decision) {
	if before.Phase != d.Status.Phase {
		m.moved(aw, before, d)
	}
	if since, first := unsuspended(d.Status); first && becameReady(before, d.Status) {
		m.ready.Observe(seconds(since, condition(d.Status, v1beta2.PodsReady).LastTransitionTime.Time))
	}
}

func (m *metrics) moved(aw *v1beta2.AppWrapper, before v1beta2.AppWrapperStatus, d lifecycle.Decision) {
	now := d.Status.PhaseTransitionTime.Time
	m.phases.WithLabelValues(aw.Namespace, string(d.Status.Phase)).Inc()
	m.transitions.WithLabelValues(phaseName(before.Phase), phaseName(d.Status.Phase), d.Because).Inc()
	if began, known := phaseBegan(aw, before); known {
		m.inPhase.WithLabelValues(phaseName(before.Phase)).Observe(seconds(began, now))
	}
	switch d.Status.Phase {
	case v1beta2.AppWrapperRunning:
		if since, first := unsuspended(before); first {
			m.created.Observe(seconds(since, now))
		}
	case v1beta2.AppWrapperResetting:
		m.resets.WithLabelValues(among(resetCauses, condition(d.Status, v1beta2.Unhealthy).Reason)).Inc()
	}
}

// seconds are never negative, whatever clocks do: a sum that falls looks like a restart.
func seconds(from, to time.Time) float64 {
	return max(to.Sub(from), 0).Seconds()
}

// phaseBegan is not known where another controller has moved the phase and noted no time.
func phaseBegan(aw *v1beta2.AppWrapper, s v1beta2.AppWrapperStatus) (time.Time, bool) {
	if s.Phase == v1beta2.AppWrapperEmpty {
		return aw.CreationTimestamp.Time, true
	}
	if s.PhaseTransitionTime == nil {
		return time.Time{}, false
	}
	return s.PhaseTransitionTime.Time, true
}

// unsuspended is when quota was given, if this is the first attempt since: a later one
// begins when ResourcesDeployed turns True again.
func unsuspended(s v1beta2.AppWrapperStatus) (since time.Time, first bool) {
	quota, deployed := condition(s, v1beta2.QuotaReserved), condition(s, v1beta2.ResourcesDeployed)
	first = quota.Status == metav1.ConditionTrue && deployed.Status == metav1.ConditionTrue &&
		quota.LastTransitionTime.Equal(&deployed.LastTransitionTime)
	return quota.LastTransitionTime.Time, first
}

// becameReady: for the first time in this attempt.
func becameReady(before, after v1beta2.AppWrapperStatus) bool {
	return condition(after, v1beta2.PodsReady).Status == metav1.ConditionTrue &&
		condition(before, v1beta2.PodsReady).Reason == string(v1beta2.AppWrapperResuming)
}

// condition is the zero condition where there is none.
func condition(s v1beta2.AppWrapperStatus, kind v1beta2.AppWrapperCondition) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, string(kind)); c != nil {
		return *c
	}
	return metav1.Condition{}
}
