// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/golden"
)

// A story is the life of one AppWrapper. Its transcript shows on the left when
// something happened, then who did it, then what it was.
type story struct {
	world *world
	text  strings.Builder
	at    string // the time that was written last
}

func tell(t *testing.T, policy lifecycle.Policy, resources ...*resource) *story {
	t.Helper()
	s := &story{world: newWorld(policy, resources...)}
	s.world.notes = s.note
	s.world.broken = func(promise string) { t.Errorf("broken: %s", promise) }
	s.note("user", "creates an AppWrapper of "+describe(resources))
	s.world.settle()
	t.Cleanup(func() {
		file := strings.ReplaceAll(strings.TrimPrefix(t.Name(), "TestStories/"), "_", " ")
		golden.Compare(t, filepath.Join("testdata", "stories", file+".golden"), []byte(s.text.String()))
	})
	return s
}

func describe(resources []*resource) string {
	parts := make([]string, len(resources))
	for i, r := range resources {
		parts[i] = fmt.Sprintf("%s %q with %d pods", r.kind, r.name, r.replicas)
	}
	return strings.Join(parts, " and ")
}

func (s *story) note(who, what string) {
	at := s.world.now.Sub(s.world.born).String()
	if at == s.at {
		at = ""
	} else {
		s.text.WriteString("\n")
		s.at = at
	}
	if who == "time" {
		who, what = "controller", "looks again"
	}
	s.text.WriteString(strings.TrimRight(fmt.Sprintf("%-10s %-10s %s", at, who, what), " ") + "\n")
}

// then is one step of the script.
func (s *story) then(who, what string, does func(*world)) *story {
	s.note(who, what)
	does(s.world)
	return s
}

func (s *story) after(d time.Duration) *story {
	s.world.pass(d)
	return s
}

func (s *story) admitted() *story {
	return s.then("Kueue", "admits it", (*world).admit)
}

func (s *story) evicted() *story {
	return s.then("Kueue", "evicts it", (*world).evict)
}

func (s *story) deleted() *story {
	return s.then("user", "deletes it", (*world).remove)
}

func (s *story) podsStart() *story {
	return s.then("kubelet", "all pods start", (*world).allStart)
}

// noteStatus writes down how a status differs from the one before it.
func (w *world) noteStatus(before, after v1beta2.AppWrapperStatus) {
	move := fmt.Sprintf("%s → %s", name(before.Phase), name(after.Phase))
	if before.Phase == after.Phase {
		move = "saves the status in " + name(after.Phase)
	}
	w.notes("controller", move)
	if before.Retries != after.Retries {
		w.notes("", fmt.Sprintf("  resettingCount %d", after.Retries))
	}
	w.noteConditions("", before.Conditions, after.Conditions)
	for i, c := range after.ComponentStatus {
		var old []metav1.Condition
		if i < len(before.ComponentStatus) {
			old = before.ComponentStatus[i].Conditions
		}
		w.noteConditions(w.resources[i].name+": ", old, c.Conditions)
	}
}

func (w *world) noteConditions(whose string, before, after []metav1.Condition) {
	known := map[string]metav1.Condition{}
	for _, c := range before {
		known[c.Type] = c
	}
	for _, c := range after {
		old := known[c.Type]
		delete(known, c.Type)
		if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
			continue
		}
		w.notes("", strings.TrimRight(fmt.Sprintf("  %s%s %s %s  %s", whose, c.Type, c.Status, c.Reason, c.Message), " "))
	}
	for _, c := range before {
		if _, removed := known[c.Type]; removed {
			w.notes("", fmt.Sprintf("  %s%s forgotten", whose, c.Type))
		}
	}
}

func name(phase v1beta2.AppWrapperPhase) string {
	if phase == v1beta2.AppWrapperEmpty {
		return "(new)"
	}
	return string(phase)
}

func completes(i int) func(*world) {
	return func(w *world) {
		for _, p := range w.pods {
			if p.Component == i && p.Phase == corev1.PodRunning {
				p.Phase = corev1.PodSucceeded
			}
		}
		w.resources[i].verdict = kinds.Succeeded
		w.settle()
	}
}

func fails(i int, exitCode int32) func(*world) {
	return func(w *world) {
		for _, p := range w.pods {
			if p.Component == i && p.Phase == corev1.PodRunning {
				p.Phase, p.ExitCodes = corev1.PodFailed, []int32{exitCode}
			}
		}
		w.resources[i].verdict = kinds.Failed
		w.settle()
	}
}

func TestStories(t *testing.T) {
	var files []string
	for sentence, script := range stories {
		t.Run(sentence, script)
		files = append(files, filepath.Join("testdata", "stories", sentence+".golden"))
	}
	golden.Only(t, filepath.Join("testdata", "stories", "*.golden"), files)
}

var stories = map[string]func(*testing.T){
	"success": func(t *testing.T) {
		policy := standardPolicy()
		policy.SuccessTTL = time.Hour
		tell(t, policy, job("train", 2)).
			after(10*time.Second).admitted().
			after(5*time.Second).podsStart().
			after(3*time.Hour).then("owner", "the Job is complete", completes(0)).
			after(2 * time.Hour)
	},

	"success of a PyTorchJob whose workers live on": func(t *testing.T) {
		tell(t, standardPolicy(), pyTorchJob("train", 3)).admitted().
			after(5*time.Second).podsStart().
			after(time.Hour).then("owner", "the master ends and the PyTorchJob has succeeded; the workers idle", func(w *world) {
			w.resources[0].verdict = kinds.Succeeded
			w.onePod(0, corev1.PodSucceeded)
		}).
			after(5 * time.Minute)
	},

	"a finished Job cleans itself up while another works": func(t *testing.T) {
		tell(t, standardPolicy(), job("first", 1), job("second", 1), service("front")).admitted().
			after(5*time.Second).podsStart().
			after(time.Minute).then("owner", "Job first is complete", completes(0)).
			after(10*time.Second).then("owner", "Job first reaches its own time to live", func(w *world) {
			w.resources[0].exists = false
			w.settle()
		}).
			after(time.Hour).then("owner", "Job second is complete", completes(1))
	},

	"retry then success": func(t *testing.T) {
		tell(t, standardPolicy(), job("train", 1)).admitted().
			after(5*time.Second).podsStart().
			after(time.Minute).then("owner", "the Job has failed", fails(0, 1)).
			after(90*time.Second).
			after(5*time.Second).podsStart().
			after(time.Hour).then("owner", "the Job is complete", completes(0))
	},

	"retries exhausted": func(t *testing.T) {
		policy := standardPolicy()
		policy.RetryLimit = 1
		policy.DeletionOnFailureHold = 10 * time.Minute
		tell(t, policy, job("train", 1)).admitted().
			after(5*time.Second).podsStart().
			after(time.Minute).then("owner", "the Job has failed", fails(0, 1)).
			after(90*time.Second).
			after(5*time.Second).podsStart().
			after(time.Minute).then("owner", "the Job has failed", fails(0, 1)).
			after(15 * time.Minute)
	},

	"a terminal exit code ends it at once": func(t *testing.T) {
		policy := standardPolicy()
		policy.TerminalExitCodes = []int32{13}
		tell(t, policy, job("train", 1)).admitted().podsStart().
			after(time.Minute).then("owner", "the Job has failed with exit code 13", fails(0, 13))
	},

	"failed pods that are replaced do no harm": func(t *testing.T) {
		patient := job("train", 2)
		patient.replaces = true
		tell(t, standardPolicy(), patient).admitted().
			after(5*time.Second).podsStart().
			after(time.Minute).then("kubelet", "a pod fails", func(w *world) { w.onePod(0, corev1.PodFailed, 1) }).
			after(20*time.Second).podsStart().
			after(time.Hour).then("owner", "the Job is complete", completes(0))
	},

	"a pod that fails and is not replaced": func(t *testing.T) {
		tell(t, standardPolicy(), custom("train", 2)).admitted().podsStart().
			after(time.Hour).then("kubelet", "a pod fails", func(w *world) { w.onePod(0, corev1.PodFailed, 1) }).
			after(2 * time.Minute)
	},

	"a pod that is lost after warm-up": func(t *testing.T) {
		tell(t, standardPolicy(), custom("train", 2)).admitted().podsStart().
			after(time.Hour).then("kubelet", "a pod is evicted", func(w *world) { w.loses(0) }).
			after(30*time.Second).podsStart().
			after(time.Hour).then("kubelet", "a pod is evicted", func(w *world) { w.loses(0) }).
			after(2 * time.Minute)
	},

	"pods that never start": func(t *testing.T) {
		policy := standardPolicy()
		policy.RetryLimit = 0
		tell(t, policy, job("train", 2)).admitted().after(6 * time.Minute)
	},

	"a component that is refused for a while": func(t *testing.T) {
		broken := job("train", 1)
		broken.refusal = &lifecycle.Refusal{Message: "the webhook is not reachable"}
		tell(t, standardPolicy(), service("front"), broken).admitted().
			after(10*time.Second).then("API server", "is well again", func(w *world) { broken.refusal = nil }).
			after(10 * time.Second)
	},

	"a Job ends and cleans itself up while another is refused": func(t *testing.T) {
		second := job("second", 1)
		second.refusal = &lifecycle.Refusal{Message: "exceeded quota: pods"}
		tell(t, standardPolicy(), job("first", 1), second).admitted().podsStart().
			after(5*time.Second).then("owner", "Job first is complete", completes(0)).
			after(5*time.Second).then("owner", "Job first reaches its own time to live", func(w *world) {
			w.resources[0].exists = false
			w.settle()
		}).
			after(time.Second).then("admin", "makes room", func(w *world) { second.refusal = nil }).
			after(20*time.Second).podsStart().
			after(time.Hour).then("owner", "Job second is complete", completes(1))
	},

	"a component that is refused for too long": func(t *testing.T) {
		broken := job("train", 1)
		broken.refusal = &lifecycle.Refusal{Message: "the webhook is not reachable"}
		policy := standardPolicy()
		policy.RetryLimit = 0
		tell(t, policy, service("front"), broken).admitted().after(2 * time.Minute)
	},

	"a component that is refused for good": func(t *testing.T) {
		broken := job("train", 1)
		broken.refusal = &lifecycle.Refusal{Message: "spec.template is invalid", Final: true}
		tell(t, standardPolicy(), service("front"), broken).admitted()
	},

	"a component that somebody removes": func(t *testing.T) {
		tell(t, standardPolicy(), job("train", 1), job("watch", 1)).admitted().podsStart().
			after(time.Minute).then("user", "deletes Job watch", func(w *world) {
			vanishes(w, 1)
			w.settle()
		})
	},

	"suspension by Kueue while running": func(t *testing.T) {
		tell(t, standardPolicy(), job("train", 2)).admitted().podsStart().
			after(time.Hour).evicted().
			after(time.Hour).admitted().podsStart()
	},

	"suspension while a pod is stuck holds the quota": func(t *testing.T) {
		tell(t, standardPolicy(), job("train", 2)).admitted().podsStart().
			after(time.Hour).then("node", "the node of a pod is lost", func(w *world) { w.pods[0].stuck = true }).evicted().
			after(time.Minute).then("kubelet", "the node is back and the pod is stopped", func(w *world) {
			w.pods[0].stuck = false
			w.settle()
		})
	},

	"suspension during the pause between two attempts": func(t *testing.T) {
		tell(t, standardPolicy(), job("train", 1)).admitted().podsStart().
			after(time.Minute).then("owner", "the Job has failed", fails(0, 1)).
			after(30 * time.Second).evicted()
	},

	"deletion while running": func(t *testing.T) {
		tell(t, standardPolicy(), job("train", 2)).admitted().podsStart().
			after(time.Hour).deleted()
	},

	"deletion that leaves the components alone": func(t *testing.T) {
		tell(t, standardPolicy(), job("train", 2)).admitted().podsStart().
			after(time.Hour).then("user", "deletes it with --cascade=orphan", func(w *world) {
			w.orphaning = true
			w.remove()
		})
	},

	"deletion before it was ever admitted": func(t *testing.T) {
		tell(t, standardPolicy(), job("train", 2)).after(time.Hour).deleted()
	},

	"forced deletion": func(t *testing.T) {
		held := job("train", 2)
		held.stubborn = true
		tell(t, standardPolicy(), held).admitted().podsStart().
			after(time.Hour).then("node", "the node of a pod is lost", func(w *world) { w.pods[0].stuck = true }).deleted().
			after(20*time.Minute).then("user", "removes the finalizer of the Job", func(w *world) {
			held.stubborn = false
			w.settle()
		})
	},
}
