// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// FuzzParsePolicy: whatever annotations say, a policy stays within its bounds, and when
// it is written down again it is read as the same.
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
				t.Errorf("the problem is with %q = %q, which nobody wrote", p.Annotation, p.Value)
			}
		}
		for _, d := range []time.Duration{policy.AdmissionGrace, policy.WarmupGrace, policy.FailureGrace,
			policy.RetryPause, policy.ForcefulDeletionGrace, policy.DeletionOnFailureHold} {
			if d < 0 || d > defaults.GraceCeiling {
				t.Errorf("a period of %s", d)
			}
		}
		if policy.SuccessTTL <= 0 || policy.SuccessTTL > defaults.SuccessTTLCeiling || policy.RetryLimit < 0 {
			t.Errorf("a time to live of %s, and %d retries", policy.SuccessTTL, policy.RetryLimit)
		}
		again, problems := lifecycle.ParsePolicy(written(policy), defaults)
		if diff := cmp.Diff(policy, again); diff != "" || len(problems) > 0 {
			t.Errorf("written down and read again it is another, %v (-first +again):\n%s", problems, diff)
		}
	})
}

// written is the policy as annotations.
func written(p lifecycle.Policy) map[string]string {
	annotations := map[string]string{
		v1beta2.AdmissionGracePeriodDurationAnnotation: p.AdmissionGrace.String(),
		v1beta2.WarmupGracePeriodDurationAnnotation:    p.WarmupGrace.String(),
		v1beta2.FailureGracePeriodDurationAnnotation:   p.FailureGrace.String(),
		v1beta2.RetryPausePeriodDurationAnnotation:     p.RetryPause.String(),
		v1beta2.RetryLimitAnnotation:                   fmt.Sprint(p.RetryLimit),
		v1beta2.ForcefulDeletionGracePeriodAnnotation:  p.ForcefulDeletionGrace.String(),
		v1beta2.DeletionOnFailureGracePeriodAnnotation: p.DeletionOnFailureHold.String(),
		v1beta2.SuccessTTLAnnotation:                   p.SuccessTTL.String(),
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
