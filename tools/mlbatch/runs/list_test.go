// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

func TestRunsOfOneNamespaceOrOfAllAreListed(t *testing.T) {
	red := accepted("c", v1alpha1.RunSucceeded, "")
	red.Namespace = "red"
	c := cluster(t, interceptor.Funcs{}, accepted("a", v1alpha1.RunRunning, ""), runOf("b", "", ""), red)
	for namespace, want := range map[string]int{"blue": 2, "red": 1, "": 3} {
		list, err := runs.List(t.Context(), c, namespace)
		if err != nil || len(list) != want {
			t.Errorf("in %q: %+v, %v", namespace, list, err)
		}
	}
}

func TestWhatCannotBeListedIsOneSentence(t *testing.T) {
	refused := cluster(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return forbidden("runs")
	}})
	for name, row := range map[string]struct {
		c    client.WithWatch
		says string
	}{
		"without the right":             {refused, "cannot list the Runs of namespace blue: "},
		"no definitions":                {noDefinitions(t), "the cluster does not know Runs: an administrator sets codeflare.enabled"},
		"definitions that were deleted": {definitionsGone(t), "the cluster does not know Runs: "},
		"no cluster":                    {gone(t), "cannot list the Runs of namespace blue: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runs.List(t.Context(), row.c, "blue")
			wording.OneSentence(t, "", err, row.says)
		})
	}
}
