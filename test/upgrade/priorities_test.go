// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ofRelease are the PriorityClasses of an older release, and of this one.
var (
	ofOlderRelease = map[string]int32{"low-priority": 1, "default-priority": 5, "high-priority": 10}
	ofThisRelease  = map[string]int32{"low-priority": -5, "default-priority": 0, "high-priority": 5}
)

// replacePriorities gives the cluster the classes of an older release, and then runs the commands of
// docs/quota.md. Work must go on.
func (s *site) replacePriorities() {
	s.Helper()
	preempts := corev1.PreemptLowerPriority
	for name, value := range ofOlderRelease {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.must(s.admin.Delete(s.Context(), class))
		class = &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
			GlobalDefault: name == "default-priority", PreemptionPolicy: &preempts,
		}
		s.must(s.admin.Create(s.Context(), class))
	}
	s.wantPriorities(ofOlderRelease, preempts)
	w := s.witness()
	for _, words := range []string{"To see which ones you have", "To replace them"} {
		for _, line := range s.documented("quota.md", words) {
			if strings.HasPrefix(line, "helm upgrade mlbatch ") {
				s.applyNext("mlbatch", nextPlatform...)
				continue
			}
			s.shell(line)
		}
	}
	s.wantPriorities(ofThisRelease, corev1.PreemptNever)
	w.sawNothing("the priorities were replaced")
}

func (s *site) wantPriorities(want map[string]int32, policy corev1.PreemptionPolicy) {
	s.Helper()
	got := map[string]int32{}
	for name := range want {
		class := &schedulingv1.PriorityClass{}
		s.must(s.admin.Get(s.Context(), client.ObjectKey{Name: name}, class))
		if got[name] = class.Value; *class.PreemptionPolicy != policy {
			s.Errorf("PriorityClass %s has the policy %s", name, *class.PreemptionPolicy)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("PriorityClasses (-want +got):\n%s", diff)
	}
}
