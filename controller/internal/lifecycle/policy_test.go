// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/kinds"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestParsePolicy(t *testing.T) {
	const (
		pause   = v1beta2.RetryPausePeriodDurationAnnotation
		limit   = v1beta2.RetryLimitAnnotation
		hold    = v1beta2.DeletionOnFailureGracePeriodAnnotation
		ttl     = v1beta2.SuccessTTLAnnotation
		forever = v1beta2.TerminalExitCodesAnnotation
		again   = v1beta2.RetryableExitCodesAnnotation
		same    = v1beta2.SameFailurePeriodDurationAnnotation
	)
	type annotations = map[string]string
	cases := map[string]struct {
		configured func(*lifecycle.Defaults)
		given      annotations
		want       func(*lifecycle.Policy)
		problems   []string
	}{
		"without annotations the defaults hold": {
			want: func(*lifecycle.Policy) {},
		},
		"every period has its annotation": {
			given: annotations{
				v1beta2.AdmissionGracePeriodDurationAnnotation: "1s",
				v1beta2.WarmupGracePeriodDurationAnnotation:    "2s",
				v1beta2.InitGracePeriodDurationAnnotation:      "8s",
				v1beta2.FailureGracePeriodDurationAnnotation:   "3s",
				v1beta2.SameFailurePeriodDurationAnnotation:    "8s",
				pause: "4s",
				v1beta2.ForcefulDeletionGracePeriodAnnotation: "5s",
				hold: "6s",
				ttl:  "7s",
			},
			want: func(p *lifecycle.Policy) {
				p.AdmissionGrace, p.WarmupGrace, p.FailureGrace = time.Second, 2*time.Second, 3*time.Second
				p.SameFailure = 8 * time.Second
				p.RetryPause, p.ForcefulDeletionGrace, p.InitGrace = 4*time.Second, 5*time.Second, 8*time.Second
				p.DeletionOnFailureHold, p.SuccessTTL = 6*time.Second, 7*time.Second
			},
		},
		"an administrator may give what is kept more time": {
			configured: func(d *lifecycle.Defaults) { d.AdmissionGrace, d.ForcefulDeletionGrace = 2*time.Hour, time.Hour },
			given:      annotations{v1beta2.ForcefulDeletionGracePeriodAnnotation: "3h"},
			want: func(p *lifecycle.Policy) {
				p.AdmissionGrace, p.ForcefulDeletionGrace, p.KeptGrace = 2*time.Hour, 3*time.Hour, 2*time.Hour
			},
		},
		"durations may be composed":           {given: annotations{pause: "1h30m"}, want: func(p *lifecycle.Policy) { p.RetryPause = 90 * time.Minute }},
		"durations may be whole days":         {given: annotations{ttl: "2d"}, want: func(p *lifecycle.Policy) { p.SuccessTTL = 48 * time.Hour }},
		"a period is at least nothing":        {given: annotations{pause: "-1h"}, want: func(p *lifecycle.Policy) { p.RetryPause = 0 }},
		"a period is at most the ceiling":     {given: annotations{hold: "7d"}, want: func(p *lifecycle.Policy) { p.DeletionOnFailureHold = 24 * time.Hour }},
		"a time to live beyond the ceiling":   {given: annotations{ttl: "8d"}, want: func(*lifecycle.Policy) {}},
		"a time to live of nothing":           {given: annotations{ttl: "0s"}, want: func(*lifecycle.Policy) {}},
		"a time to live of less than nothing": {given: annotations{ttl: "-1h"}, want: func(*lifecycle.Policy) {}},
		"nodes may be used again":             {given: annotations{v1beta2.AvoidNodesAnnotation: "false"}, want: func(p *lifecycle.Policy) { p.Avoid.Nodes = 0 }},
		"nodes may be avoided":                {given: annotations{v1beta2.AvoidNodesAnnotation: "true"}, want: func(*lifecycle.Policy) {}},
		"what is neither is reported": {
			given: annotations{v1beta2.AvoidNodesAnnotation: "no"}, want: func(*lifecycle.Policy) {},
			problems: []string{`annotation ` + v1beta2.AvoidNodesAnnotation + `: "no" is neither true nor false`},
		},
		"the limit is a number":                                     {given: annotations{limit: "0"}, want: func(p *lifecycle.Policy) { p.RetryLimit, p.SameFailure = 0, 0 }},
		"the limit is at most the ceiling":                          {given: annotations{limit: "2147483647"}, want: func(p *lifecycle.Policy) { p.RetryLimit, p.SameFailure = 100, 0 }},
		"a limit of retries is for failures that are the same, too": {given: annotations{limit: "3"}, want: func(p *lifecycle.Policy) { p.SameFailure = 0 }},
		"unless the author says otherwise":                          {given: annotations{limit: "3", same: "1m"}, want: func(p *lifecycle.Policy) { p.SameFailure = time.Minute }},
		"exit codes are a list": {given: annotations{forever: "1,2", again: "137"}, want: func(p *lifecycle.Policy) {
			p.TerminalExitCodes, p.RetryableExitCodes, p.SameFailure = []int32{1, 2}, []int32{137}, 0
		}},
		"exit codes may be spaced": {given: annotations{forever: "1, 2"}, want: func(p *lifecycle.Policy) { p.TerminalExitCodes = []int32{1, 2} }},
		"a duration that is none": {
			given: annotations{pause: "soon"}, want: func(*lifecycle.Policy) {},
			problems: []string{`annotation ` + pause + `: "soon" is not a duration such as "90s", "1h30m" or "7d"`},
		},
		"a duration of half a day": {
			given: annotations{pause: "0.5d"}, want: func(*lifecycle.Policy) {},
			problems: []string{`annotation ` + pause + `: "0.5d" is not a duration such as "90s", "1h30m" or "7d"`},
		},
		"a duration of more days than there are": {
			given: annotations{pause: "2000000000d"}, want: func(*lifecycle.Policy) {},
			problems: []string{`annotation ` + pause + `: "2000000000d" is not a duration such as "90s", "1h30m" or "7d"`},
		},
		"a limit below nothing": {
			given: annotations{limit: "-1"}, want: func(p *lifecycle.Policy) { p.SameFailure = 0 },
			problems: []string{`annotation ` + limit + `: "-1" is not a whole number from 0 to 2147483647`},
		},
		"a limit that does not fit": {
			given: annotations{limit: "4294967297"}, want: func(p *lifecycle.Policy) { p.SameFailure = 0 },
			problems: []string{`annotation ` + limit + `: "4294967297" is not a whole number from 0 to 2147483647`},
		},
		"a bad exit code is skipped": {
			given: annotations{forever: "1,x,3"}, want: func(p *lifecycle.Policy) { p.TerminalExitCodes = []int32{1, 3} },
			problems: []string{`annotation ` + forever + `: "1,x,3" has the item "x", which is not a whole number`},
		},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			want := standardPolicy()
			c.want(&want)
			defaults := lifecycle.StandardDefaults()
			if c.configured != nil {
				c.configured(&defaults)
			}
			got, problems := lifecycle.ParsePolicy(c.given, defaults)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var messages []string
			for _, p := range problems {
				messages = append(messages, p.Error())
			}
			if diff := cmp.Diff(c.problems, messages); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParsePolicy checks that any annotations give a policy within its bounds, and that the
// policy, written as annotations, parses to the same policy.
func FuzzParsePolicy(f *testing.F) {
	for _, d := range []string{"1m", "7d", "-1h", "1.5h", "soon", "9223372036854775807ns", "106751d"} {
		f.Add(d, d, "3", "1,2, 137")
	}
	f.Fuzz(func(t *testing.T, grace, ttl, limit, codes string) {
		annotations := map[string]string{
			v1beta2.SuccessTTLAnnotation:         ttl,
			v1beta2.RetryLimitAnnotation:         limit,
			v1beta2.TerminalExitCodesAnnotation:  codes,
			v1beta2.RetryableExitCodesAnnotation: codes,
		}
		for _, name := range lifecycle.Annotations() {
			if _, set := annotations[name]; !set {
				annotations[name] = grace
			}
		}
		defaults := lifecycle.StandardDefaults()
		policy, problems := lifecycle.ParsePolicy(annotations, defaults)
		for _, p := range problems {
			if annotations[p.Annotation] != p.Value {
				t.Errorf("the problem is %q = %q, which is not an annotation", p.Annotation, p.Value)
			}
		}
		for _, d := range []time.Duration{policy.AdmissionGrace, policy.WarmupGrace, policy.InitGrace, policy.FailureGrace,
			policy.RetryPause, policy.ForcefulDeletionGrace, policy.DeletionOnFailureHold, policy.NoProgressGrace, policy.IdleGrace, policy.SameFailure} {
			if d < 0 || d > defaults.GraceCeiling {
				t.Errorf("a period of %s", d)
			}
		}
		if policy.SuccessTTL <= 0 || policy.SuccessTTL > defaults.SuccessTTL || policy.RetryLimit < 0 {
			t.Errorf("a time to live of %s, and %d retries", policy.SuccessTTL, policy.RetryLimit)
		}
		again, problems := lifecycle.ParsePolicy(written(policy), defaults)
		if diff := cmp.Diff(policy, again); diff != "" || len(problems) > 0 {
			t.Errorf("it differs after writing and parsing it, %v (-first +again):\n%s", problems, diff)
		}
	})
}

// written returns the policy as annotations.
func written(p lifecycle.Policy) map[string]string {
	annotations := map[string]string{
		v1beta2.AdmissionGracePeriodDurationAnnotation:  p.AdmissionGrace.String(),
		v1beta2.WarmupGracePeriodDurationAnnotation:     p.WarmupGrace.String(),
		v1beta2.InitGracePeriodDurationAnnotation:       p.InitGrace.String(),
		v1beta2.FailureGracePeriodDurationAnnotation:    p.FailureGrace.String(),
		v1beta2.RetryPausePeriodDurationAnnotation:      p.RetryPause.String(),
		v1beta2.SameFailurePeriodDurationAnnotation:     p.SameFailure.String(),
		v1beta2.RetryLimitAnnotation:                    fmt.Sprint(p.RetryLimit),
		v1beta2.ForcefulDeletionGracePeriodAnnotation:   p.ForcefulDeletionGrace.String(),
		v1beta2.DeletionOnFailureGracePeriodAnnotation:  p.DeletionOnFailureHold.String(),
		v1beta2.NoProgressGracePeriodDurationAnnotation: p.NoProgressGrace.String(),
		v1beta2.IdleGracePeriodDurationAnnotation:       p.IdleGrace.String(),
		v1beta2.SuccessTTLAnnotation:                    p.SuccessTTL.String(),
	}
	for name, codes := range map[string][]int32{
		v1beta2.TerminalExitCodesAnnotation: p.TerminalExitCodes, v1beta2.RetryableExitCodesAnnotation: p.RetryableExitCodes,
	} {
		if len(codes) > 0 {
			annotations[name] = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(codes)), ","), "[]")
		}
	}
	return annotations
}

// A list that is parsed for each pod would cost memory for each.
func TestExitCodesAreParsedOnce(t *testing.T) {
	policy, _ := lifecycle.ParsePolicy(map[string]string{
		v1beta2.TerminalExitCodesAnnotation: "3,4,5", v1beta2.RetryableExitCodesAnnotation: "1,2",
	}, lifecycle.StandardDefaults())
	cost := func(failed int) float64 {
		s := runningJob()
		s.Policy = policy
		verdict(kinds.Failed)(&s)
		s.Pods = nil
		for range failed {
			s.Pods = append(s.Pods, lifecycle.Pod{Phase: broken, ExitCodes: []int32{1}})
		}
		return testing.AllocsPerRun(100, func() { lifecycle.Decide(s, deployedAt.Add(time.Hour)) })
	}
	if one, many := cost(1), cost(100); many > one {
		t.Errorf("a decision allocates %.0f times with one failed pod, and %.0f times with a hundred", one, many)
	}
}
