// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/quotareason"
)

// lastAttempt decides about a Job that runs, after the changes, and returns the attempt that this ended.
func lastAttempt(t *testing.T, changes ...change) *v1beta2.AppWrapperAttempt {
	t.Helper()
	s := deployed(v1beta2.AppWrapperRunning)
	s.Policy.LastWords = true
	for _, c := range changes {
		c(&s)
	}
	d := lifecycle.Decide(s, deployedAt.Add(time.Hour))
	if n := len(d.Status.LastAttempts); n > 0 {
		return &d.Status.LastAttempts[n-1]
	}
	return nil
}

func traceback(p *lifecycle.Pod) {
	p.Rank, p.Node, p.Component, p.PodSet = "1", "n1", 0, 0
	p.Failures[0].Began, p.Failures[0].LastWords = deployedAt.Add(50*time.Second), "Traceback:\n  \x1b[31mKeyError\x1b[0m\x00: 'x'\xff\n"
}

func beganAt(at time.Time) func(*lifecycle.Pod) {
	return func(p *lifecycle.Pod) { p.Failures[0].Began = at }
}

func TestAnAttemptThatEndsIsRemembered(t *testing.T) {
	began, ended := metav1.Time{Time: deployedAt}, metav1.Time{Time: deployedAt.Add(time.Hour)}
	crash := failedPod("train-1", exits("main", 7, time.Minute))
	for sentence, tc := range map[string]struct {
		given []change
		want  *v1beta2.AppWrapperAttempt
	}{
		"a crash, and its last words without what moves the cursor": {[]change{verdict(kinds.Failed), withPods(), crash, allPods(traceback)},
			&v1beta2.AppWrapperAttempt{Began: began, Ended: ended, Cause: "ComponentFailed", Pod: "train-1", PodSet: new(int32(0)), Rank: "1",
				Node: "n1", Container: "main", ExitCode: 7, RanSeconds: new(int64(10)), LastWords: "Traceback:\n  [31mKeyError[0m: 'x'"}},
		"a team does not want last words": {[]change{verdict(kinds.Failed), withPods(), crash, allPods(traceback), policy(func(p *lifecycle.Policy) { p.LastWords = false })},
			&v1beta2.AppWrapperAttempt{Began: began, Ended: ended, Cause: "ComponentFailed", Pod: "train-1", PodSet: new(int32(0)), Rank: "1",
				Node: "n1", Container: "main", ExitCode: 7, RanSeconds: new(int64(10))}},
		"a program that ended within its first second": {[]change{verdict(kinds.Failed), withPods(), failedPod("train-1", exits("main", 7, time.Minute)), allPods(beganAt(deployedAt.Add(time.Minute)))},
			&v1beta2.AppWrapperAttempt{Began: began, Ended: ended, Cause: "ComponentFailed", Pod: "train-1", PodSet: new(int32(0)), Container: "main", ExitCode: 7, RanSeconds: new(int64(0))}},
		"one that its runtime cannot start, which began in 1970": {[]change{verdict(kinds.Failed), withPods(), failedPod("train-1", exits("main", 7, time.Minute)), allPods(beganAt(time.Unix(0, 0)))},
			&v1beta2.AppWrapperAttempt{Began: began, Ended: ended, Cause: "ComponentFailed", Pod: "train-1", PodSet: new(int32(0)), Container: "main", ExitCode: 7}},
		"a lack of memory": {[]change{verdict(kinds.Failed), withPods(), failedPod("train-0", outOfMemory("main", time.Minute))},
			&v1beta2.AppWrapperAttempt{Began: began, Ended: ended, Cause: "ComponentFailed", Reason: "OOMKilled", Pod: "train-0", PodSet: new(int32(0)), Container: "main", ExitCode: 137}},
		"a preemption": {[]change{suspend, withPods(runs, runs), func(s *lifecycle.Snapshot) { s.Kueue = quotareason.Word{Known: true, Evicted: "Preempted"} }},
			&v1beta2.AppWrapperAttempt{Began: began, Ended: ended, Cause: "Suspended", Reason: "Preempted"}},
		"a component that somebody removed": {[]change{absent, withPods(runs, runs)}, &v1beta2.AppWrapperAttempt{Began: began, Ended: ended, Cause: "ComponentMissing"}},
		"success is no such end":            {[]change{verdict(kinds.Succeeded), withPods(done, done)}, nil},
		"work that goes on has no end":      {[]change{withPods(runs, runs)}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lastAttempt(t, tc.given...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Whatever programs write, three attempts have at most 12 KiB, of which the end of the latest is what is read.
func TestAttemptsAreBounded(t *testing.T) {
	hostile := map[string]string{
		"lines":                    strings.Repeat("a line of a log\n", 400),
		"one line":                 strings.Repeat("x", 9000),
		"characters of many bytes": strings.Repeat("日本", 3000),
		"what JSON escapes":        strings.Repeat("<\"\n>", 2000),
		"nothing":                  "",
	}
	for first, words := range hostile {
		for second, more := range hostile {
			var all []v1beta2.AppWrapperAttempt
			for n := range 5 {
				all = lifecycle.BoundAttempts(append(all, v1beta2.AppWrapperAttempt{Pod: fmt.Sprintf("p%d", n), LastWords: words}))
				words, more = more, words
			}
			text, err := json.Marshal(all)
			if err != nil || len(text) > 12<<10 || len(all) != 3 || all[2].Pod != "p4" {
				t.Errorf("%s, %s: %d bytes of %d attempts, %v", first, second, len(text), len(all), err)
			}
			for _, a := range all {
				if !utf8.ValidString(a.LastWords) {
					t.Errorf("%s, %s: a character is cut", first, second)
				}
			}
			if hostile[second] == "" && first != "nothing" && words != "" && all[2].LastWords == "" {
				t.Errorf("%s: nothing is left of the latest", first)
			}
		}
	}
}
