// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
)

var began = time.Date(2026, 11, 27, 22, 0, 0, 0, time.UTC)

// lived plays a pod until nothing happens any more, or until some moments have passed, and says what its node reported.
func lived(t *testing.T, text string, policy corev1.RestartPolicy, moments int) (said []string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{PlayAnnotation: text}},
		Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "main"}}},
	}
	starts := 0
	l, err := newLife(pod, func() int { starts++; return starts }, began)
	if err != nil {
		t.Fatal(err)
	}
	at := began
	for range moments {
		s := l.status(pod.Status)
		pod.Status = s
		c := s.ContainerStatuses[0]
		said = append(said, fmt.Sprintf("%s %s %s ready=%t restarts=%d", at.Sub(began), s.Phase, kind(c.State), c.Ready, c.RestartCount))
		if l.next.IsZero() {
			break
		}
		at = l.next
		if err := l.advance(at); err != nil {
			t.Fatal(err)
		}
	}
	return said
}

func TestContainersDoWhatTheAnnotationSays(t *testing.T) {
	for name, row := range map[string]struct {
		play   string
		policy corev1.RestartPolicy
		want   []string
	}{
		"nothing is said: they run": {"", corev1.RestartPolicyNever, []string{
			"0s Pending waiting ready=false restarts=0", "0s Running running ready=true restarts=0",
		}},
		"they take their time": {"start=1s ready=2s run=5s", corev1.RestartPolicyNever, []string{
			"0s Pending waiting ready=false restarts=0", "1s Running running ready=false restarts=0",
			"3s Running running ready=true restarts=0", "6s Succeeded terminated ready=false restarts=0",
		}},
		"they fail before they are ready": {"ready=never run=5s exit=3", corev1.RestartPolicyNever, []string{
			"0s Pending waiting ready=false restarts=0", "0s Running running ready=false restarts=0", "5s Failed terminated ready=false restarts=0",
		}},
		"they fail once": {"run=1s; first=1 exit=1", corev1.RestartPolicyOnFailure, []string{
			"0s Pending waiting ready=false restarts=0", "0s Running running ready=true restarts=0",
			"1s Running waiting ready=false restarts=0", "3s Running running ready=true restarts=1", "4s Succeeded terminated ready=false restarts=1",
		}},
		"they are of another index": {"run=1s; index=1 exit=1", corev1.RestartPolicyNever, []string{
			"0s Pending waiting ready=false restarts=0", "0s Running running ready=true restarts=0", "1s Succeeded terminated ready=false restarts=0",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, lived(t, row.play, row.policy, 10)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADeletedPodEndsWithinItsGrace(t *testing.T) {
	for name, row := range map[string]struct {
		play  string
		grace time.Duration
		want  time.Duration
	}{
		"at once":                {"", 30 * time.Second, 0},
		"when the program stops": {"stop=5s", 30 * time.Second, 5 * time.Second},
		"killed":                 {"stop=never", 30 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{PlayAnnotation: row.play}}}
			l, err := newLife(pod, func() int { return 1 }, began)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.advance(began); err != nil {
				t.Fatal(err)
			}
			l.stop(row.grace, began)
			if got := l.next.Sub(began); got != row.want {
				t.Errorf("it ends after %s, not %s", got, row.want)
			}
		})
	}
}

func TestAWrongAnnotationIsRefused(t *testing.T) {
	for _, text := range []string{"runs=5s", "run=5", "exit=no", "index=a"} {
		if _, err := parsePlay(text, 0, 1); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
