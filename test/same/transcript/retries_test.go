// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/same/transcript"
)

func TestAnAppWrapperThatMayBeginAgain(t *testing.T) {
	ended := func(outcome transcript.Outcome, pods int) transcript.Summary {
		return transcript.Summary{Outcome: outcome, Pods: map[string]int{"job": pods}}
	}
	for name, test := range map[string]struct {
		bare, wrapped transcript.Summary
		disturbed     bool
		attempts      []string
		want          []string
	}{
		"what goes well needs one attempt": {
			bare: ended(transcript.Succeeded, 1), wrapped: ended(transcript.Succeeded, 2), attempts: []string{"PodsFailed"},
			want: []string{"wrapped it began again, because of PodsFailed", "pods of job: bare 1, wrapped 2"},
		},
		"what fails may begin again":           {bare: ended(transcript.Failed, 1), wrapped: ended(transcript.Succeeded, 3), attempts: []string{"PodsFailed"}},
		"what is disturbed may begin again":    {bare: ended(transcript.Succeeded, 2), wrapped: ended(transcript.Succeeded, 3), disturbed: true, attempts: []string{"NodeUnhealthy"}},
		"what is disturbed must not end worse": {bare: ended(transcript.Succeeded, 2), wrapped: ended(transcript.Failed, 3), disturbed: true, want: []string{"bare it is Succeeded, wrapped Failed"}},
		"it begins again only for what is documented": {
			bare: ended(transcript.Failed, 1), wrapped: ended(transcript.Failed, 2), attempts: []string{"PodsFailed", "Boredom"},
			want: []string{`an attempt ended because of "Boredom", which is no cause of the lifecycle`},
		},
	} {
		got := transcript.WithRetries(test.bare, test.wrapped, test.disturbed, test.attempts, []string{"PodsFailed", "NodeUnhealthy"})
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
