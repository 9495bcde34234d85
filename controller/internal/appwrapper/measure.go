// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func (m *metrics) refused(r *refusal) {
	m.refusals.WithLabelValues(among(refusalReasons, r.cause)).Inc()
}

// changed counts what the decision d has made of the status that was observed.
func (m *metrics) changed(aw *v1beta2.AppWrapper, before v1beta2.AppWrapperStatus, d lifecycle.Decision) {
	if before.Phase != d.Status.Phase {
		m.moved(aw, before, d)
	}
	if condition(before, v1beta2.SurplusPods).Status != metav1.ConditionTrue && condition(d.Status, v1beta2.SurplusPods).Status == metav1.ConditionTrue {
		m.surpluses.WithLabelValues().Inc()
	}
	if since, first := unsuspended(d.Status); first && becameReady(before, d.Status) {
		m.ready.Observe(seconds(since, condition(d.Status, v1beta2.PodsReady).LastTransitionTime.Time))
	}
}

func (m *metrics) moved(aw *v1beta2.AppWrapper, before v1beta2.AppWrapperStatus, d lifecycle.Decision) {
	now := d.Status.PhaseTransitionTime.Time
	m.namespaces.Counted(aw.Namespace)
	m.phases.WithLabelValues(aw.Namespace, string(d.Status.Phase)).Inc()
	m.transitions.WithLabelValues(phaseName(before.Phase), phaseName(d.Status.Phase), among(lifecycle.Causes(), d.Because)).Inc()
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
		for _, source := range d.Left {
			m.migrations.WithLabelValues(string(source)).Inc()
		}
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
