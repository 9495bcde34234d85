// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

// Rank, node and time of a failure come from the API server, because the cache does not have them; that others failed
// on a node comes from the cache.
func TestAProgramsOwnMistakeIsNotTriedAgain(t *testing.T) {
	for sentence, tc := range map[string]struct {
		nodes       [2]string
		others      int
		annotations map[string]string
		want        v1beta2.AppWrapperPhase
	}{
		"on two nodes":                           {nodes: [2]string{"a", "b"}, want: v1beta2.AppWrapperFailed},
		"not on such a node, if none is avoided": {nodes: [2]string{"a", "a"}, others: 3, annotations: map[string]string{v1beta2.AvoidNodesAnnotation: "false"}, want: v1beta2.AppWrapperRunning},
		"on one node":                            {nodes: [2]string{"a", "a"}, want: v1beta2.AppWrapperFailed},
		"not on a node that fails others":        {nodes: [2]string{"a", "a"}, others: 3, want: v1beta2.AppWrapperRunning},
		"not if its author wants three retries":  {nodes: [2]string{"a", "b"}, annotations: map[string]string{v1beta2.RetryLimitAnnotation: "3"}, want: v1beta2.AppWrapperRunning},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, given.AppWrapper("a").With(given.Job("j", 1)).Unsuspended().Build())
			w.change(func(aw *v1beta2.AppWrapper) { aw.Annotations = tc.annotations })
			w.caching()
			w.settle()
			w.failedOnNode(tc.others, "a", w.now.Add(time.Hour))
			w.crashesOn(tc.nodes[0], 1, "KeyError: 'lr'")
			w.expectPhase(v1beta2.AppWrapperRunning)
			w.crashesOn(tc.nodes[1], 2, "KeyError: 'lr'")
			w.expectPhase(tc.want)
		})
	}
}
