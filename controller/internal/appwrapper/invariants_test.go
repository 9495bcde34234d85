// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/ledger"
)

// hear is called for every change in the world.
func (l *life) hear(before, after client.Object) {
	if l.process != nil {
		l.process.pending = append(l.process.pending, change{before, after})
	} else if c := (change{before, after}); isPod(c.object()) {
		tellOfPods(l.standby, c)
	}
	l.account()
	component, created := after.(*unstructured.Unstructured)
	if created && before == nil && !l.late {
		l.creates[component.GetName()]++
		if !l.quota {
			l.broken("nothing is created without quota")
		}
		if l.process != nil && !l.process.assured {
			l.broken("right before something is created the API server has said that there is quota")
		}
	}
	was, ok := before.(*v1beta2.AppWrapper)
	if ok && after == nil && l.somePodsLive() {
		l.broken("an AppWrapper goes only when nothing is left that uses anything")
	}
	is, also := after.(*v1beta2.AppWrapper)
	if ok && also {
		l.checkMove(was, is)
	}
}

func (l *life) checkMove(before, after *v1beta2.AppWrapper) {
	if !l.quota && !claims(before) && claims(after) {
		l.broken("quota is claimed only while there is some")
	}
	l.checkBooks(before, after)
	policy, _ := lifecycle.ParsePolicy(after.Annotations, lifecycle.StandardDefaults())
	if after.Status.Migrations > l.story.MigrationLimit {
		l.broken("migrations stay within their own limit")
	}
	if after.Status.Retries-after.Status.StartupRetries > policy.RetryLimit {
		l.broken("retries stay within the limit")
	}
	if after.Status.StartupRetries > policy.RetryLimit {
		l.broken("retries of late starts stay within a limit of their own")
	}
	ended := before.Status.Phase == v1beta2.AppWrapperSucceeded || before.Status.Phase == v1beta2.AppWrapperFailed
	if ended && after.Status.Phase != before.Status.Phase && after.Status.Phase != v1beta2.AppWrapperTerminating {
		l.broken("what has ended stays ended")
	}
	for i, c := range before.Status.ComponentStatus {
		if !reflect.DeepEqual(c.PodSets, after.Status.ComponentStatus[i].PodSets) {
			l.broken("pod sets never change")
		}
	}
}

// checkBooks compares the classes with Kueue's clock. What Kueue reserves after the AppWrapper has given
// its quota back is another quota. Times in a status are whole seconds.
func (l *life) checkBooks(before, after *v1beta2.AppWrapper) {
	claimed := l.claimed
	switch had, has := claims(before), claims(after); {
	case had && !has:
		l.claimed += l.now.Sub(l.reserved)
		claimed, l.reserved = l.claimed, l.now
	case has && !had:
		l.claims++
		claimed += l.now.Sub(l.reserved)
	case has:
		claimed += l.now.Sub(l.reserved)
	}
	if off := ledger.Sum(ledger.Until(after.Status, l.now)) - claimed; off.Abs() > time.Duration(l.claims)*time.Second {
		l.broken(fmt.Sprintf("the books balance; they are off by %s", off))
	}
}

// account plays Kueue's bookkeeping: quota stays reserved until the AppWrapper says otherwise,
// has finished, or does not exist.
func (l *life) account() {
	if !l.quota || l.holdsQuota(l.api.theOne()) {
		return
	}
	l.quota = false
	if l.somePodsLive() {
		l.broken("quota is given back only when no pod is Pending or Running")
	}
}

func (l *life) somePodsLive() bool {
	return slices.ContainsFunc(l.api.pods(), func(pod *corev1.Pod) bool {
		if owner := metav1.GetControllerOf(pod); owner != nil && l.strays[owner.UID] {
			return false // it never had quota
		}
		return pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning
	})
}

func claims(aw *v1beta2.AppWrapper) bool {
	return meta.IsStatusConditionTrue(aw.Status.Conditions, string(v1beta2.QuotaReserved))
}

func (l *life) holdsQuota(aw *v1beta2.AppWrapper) bool {
	if aw == nil || finished(aw) {
		return false
	}
	return claims(aw) || !aw.Spec.Suspend
}

// finished reports whether Kueue regards the AppWrapper as finished.
func finished(aw *v1beta2.AppWrapper) bool {
	deployed := meta.IsStatusConditionTrue(aw.Status.Conditions, string(v1beta2.ResourcesDeployed))
	return aw.Status.Phase == v1beta2.AppWrapperSucceeded || aw.Status.Phase == v1beta2.AppWrapperFailed && !deployed
}
