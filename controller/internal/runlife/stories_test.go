// SPDX-License-Identifier: Apache-2.0

package runlife_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/runlife"
	"github.com/mlbatch/mlbatch/test/golden"
)

// stories are whole lives of Runs. In each, the Run exists and nothing else.
var stories = map[string]func(*world){
	"success": func(w *world) {
		runs(w)
		w.pass(time.Hour)
		w.moves(v1beta2.AppWrapperSucceeded)
	},
	"first-the-run-then-the-application": func(w *world) {
		w.settle()
		w.pass(time.Hour)
		w.applies(application())
	},
	"a-retry-and-then-a-failure": func(w *world) {
		runs(w)
		w.pass(time.Hour)
		w.podFails()
		w.moves(v1beta2.AppWrapperResetting)
		w.moves(v1beta2.AppWrapperResuming)
		w.ready()
		w.pass(time.Hour)
		w.podFails()
		w.moves(v1beta2.AppWrapperFailed)
	},
	"preemption": func(w *world) {
		runs(w)
		w.pass(time.Hour)
		w.moves(v1beta2.AppWrapperSuspending)
		w.moves(v1beta2.AppWrapperSuspended)
		w.pass(time.Hour)
		w.moves(v1beta2.AppWrapperResuming)
		w.ready()
		w.moves(v1beta2.AppWrapperSucceeded)
	},
	"a-deactivation-and-an-activation": func(w *world) {
		queues(w)
		w.deactivates(true)
		w.pass(time.Hour)
		w.deactivates(false)
		w.pass(time.Hour)
	},
	"cancel-while-queued": func(w *world) {
		queues(w)
		w.pass(time.Hour)
		w.cancels()
		w.moves(v1beta2.AppWrapperTerminating)
		w.removes()
	},
	"cancel-before-there-is-an-application": func(w *world) {
		w.settle()
		w.cancels()
		w.applies(application())
	},
	"deadline-with-a-preemption": func(w *world) {
		w.run.Spec.ActiveDeadlineSeconds = ptr.To(int64(5400))
		runs(w)
		w.pass(time.Hour)
		w.moves(v1beta2.AppWrapperSuspending)
		w.moves(v1beta2.AppWrapperSuspended)
		w.pass(time.Hour)
	},
	"time-to-live": func(w *world) {
		w.run.Spec.TTLSecondsAfterFinished = ptr.To(int32(3600))
		runs(w)
		w.moves(v1beta2.AppWrapperSucceeded)
		w.pass(2 * time.Hour)
	},
	"time-to-live-after-a-cancel": func(w *world) {
		runs(w)
		w.cancels()
		w.removes()
		w.pass(time.Hour)
		w.edits("sets ttlSecondsAfterFinished", func(spec *v1alpha1.RunSpec) { spec.TTLSecondsAfterFinished = ptr.To(int32(60)) })
	},
	"the-appwrapper-is-deleted": func(w *world) {
		runs(w)
		w.moves(v1beta2.AppWrapperTerminating)
		w.removes()
	},
	"the-namespace-is-not-enabled-yet": func(w *world) {
		w.refusal = runlife.NamespaceNotEnabled
		queues(w)
		w.pass(12 * time.Minute)
		w.notes("admin", "binds the role")
		w.refusal = ""
		w.pass(5 * time.Minute)
	},
	"the-name-is-taken-for-a-while": func(w *world) {
		w.aw = appWrapper("uid-of-an-earlier-run")
		queues(w)
		w.pass(time.Hour)
		w.removes()
	},
	"a-work-queue": func(w *world) {
		w.hasQueue()
		runs(w)
		w.brokerFails()
		w.ready()
		w.brokerEnds()
		w.moves(v1beta2.AppWrapperSucceeded)
		w.pass(time.Hour)
	},
	"a-work-queue-that-is-given-up": func(w *world) {
		w.hasQueue()
		runs(w)
		w.brokerFails()
		w.ready()
		w.pass(time.Hour)
		w.brokerGivesUp()
		w.moves(v1beta2.AppWrapperFailed)
	},
	"a-worker-outlives-the-broker": func(w *world) {
		w.hasQueue()
		runs(w)
		w.brokerEnds()
		w.pass(time.Hour)
		w.removes()
	},
	"the-author-may-not-wrap-jobs": func(w *world) {
		w.run.Annotations[v1alpha1.AuthorMayAnnotation] = "appwrappers.workload.codeflare.dev,pytorchjobs.kubeflow.org"
		queues(w)
	},
}

func queues(w *world) {
	w.applies(w.application())
	w.moves(v1beta2.AppWrapperSuspended)
}

func runs(w *world) {
	queues(w)
	w.pass(time.Minute)
	w.moves(v1beta2.AppWrapperResuming)
	w.moves(v1beta2.AppWrapperRunning)
	w.pass(time.Minute)
	w.ready()
}

func TestStories(t *testing.T) {
	var files []string
	for title, story := range stories {
		file := filepath.Join("testdata", "stories", title+".golden")
		files = append(files, file)
		t.Run(title, func(t *testing.T) {
			s := &transcript{world: newWorld()}
			s.world.notes, s.world.broken = s.note, func(promise string) { t.Errorf("broken: %s", promise) }
			s.note("user", "creates a Run")
			story(s.world)
			fmt.Fprintf(&s.text, "\n%d status writes, %d AppWrappers made, %d lists of pods\n", s.world.writes, s.world.made, s.world.lists)
			golden.Compare(t, file, []byte(s.text.String()))
		})
	}
	golden.Only(t, filepath.Join("testdata", "stories", "*.golden"), files)
}

// A transcript shows on the left when something happened, then who did it, then what it was.
type transcript struct {
	world *world
	text  strings.Builder
	at    string // the last time written
}

func (s *transcript) note(who, what string) {
	at := s.world.now.Sub(born).String()
	if at == s.at {
		at = ""
	} else {
		if s.at != "" {
			s.text.WriteString("\n")
		}
		s.at = at
	}
	s.text.WriteString(strings.TrimRight(fmt.Sprintf("%-10s %-10s %s", at, who, what), " ") + "\n")
}
