// SPDX-License-Identifier: Apache-2.0

package fakeapiserver_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/fakeapiserver"
)

func TestRequestsAreCountedByWhatTheyAskFor(t *testing.T) {
	got := fakeapiserver.Count([]string{
		"PATCH /apis/codeflare.dev/v1alpha1/namespaces/blue/runs/a/status", "PATCH /apis/codeflare.dev/v1alpha1/namespaces/blue/runs/b/status",
		"GET /api/v1/namespaces/blue/pods", "GET /api/v1/namespaces/blue/pods/a", "GET /api/v1/nodes",
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
	})
	want := map[string]int{"PATCH runs/status": 2, "LIST pods": 1, "GET pods": 1, "LIST nodes": 1, "POST subjectaccessreviews": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
