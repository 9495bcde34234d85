// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

func TestARunIsCancelledOnce(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, runOf("a", v1alpha1.RunQueued, ""), runOf("done", v1alpha1.RunSucceeded, ""), runOf("gone", v1alpha1.RunCancelled, ""))
	for _, row := range []struct{ name, says string }{
		{"a", "Run a is cancelled in namespace blue\n"},
		{"a", "Run a is being cancelled: it is still Queued\n"},
		{"done", "Run done has already ended: it is Succeeded\n"},
		{"gone", "Run gone was cancelled before\n"},
	} {
		var out strings.Builder
		if err := runs.Cancel(t.Context(), c, client.ObjectKey{Namespace: "blue", Name: row.name}, &out); err != nil || out.String() != row.says {
			t.Errorf("got %q, %v, want %q", &out, err, row.says)
		}
	}
	var all v1alpha1.RunList
	if err := c.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Items {
		if r.Spec.Cancel != (r.Name == "a") {
			t.Errorf("%s: cancel is %v", r.Name, r.Spec.Cancel)
		}
	}
}

func TestARetryHasTheNextFreeNumber(t *testing.T) {
	long := strings.Repeat("x", 62) + "y"
	c := cluster(t, interceptor.Funcs{}, runOf("resnet-50", v1alpha1.RunFailed, ""), runOf(long, v1alpha1.RunFailed, ""), runOf("b", v1alpha1.RunFailed, ""), runOf("b-2", v1alpha1.RunFailed, ""))
	for _, row := range []struct{ of, want string }{
		{"resnet-50", "resnet-50-2"},
		{"resnet-50-2", "resnet-50-3"},
		{"resnet-50", "resnet-50-4"},
		{"b", "b-3"},
		{"b-3", "b-4"},
		{long, long[:61] + "-2"},
		{long[:61] + "-2", long[:61] + "-3"},
	} {
		var out strings.Builder
		if err := runs.Retry(t.Context(), c, client.ObjectKey{Namespace: "blue", Name: row.of}, unchanged, &out); err != nil || !strings.HasPrefix(out.String(), "Run "+row.want+" was submitted in namespace blue\n") {
			t.Errorf("retry of %s: got %q, %v, want %s", row.of, &out, err, row.want)
		}
	}
	deleted(t, c, "resnet-50-2")
	var out strings.Builder
	if err := runs.Retry(t.Context(), c, client.ObjectKey{Namespace: "blue", Name: "resnet-50-4"}, unchanged, &out); err != nil || !strings.HasPrefix(out.String(), "Run resnet-50-5 ") {
		t.Errorf("a name that was used is used again: %q, %v", &out, err)
	}
}

func unchanged(client.Object) {}

func TestARetryIsTheSameButNotCancelled(t *testing.T) {
	old := runOf("a", v1alpha1.RunCancelled, "")
	workers := int32(3)
	old.Spec.Workers, old.Spec.Cancel = &workers, true
	old.Labels = map[string]string{"team": "blue"}
	old.Annotations = map[string]string{
		"workload.codeflare.dev.appwrapper/retryLimit": "1", "codeflare.dev/author": "eve", "kubectl.kubernetes.io/last-applied-configuration": "{}",
	}
	c := cluster(t, interceptor.Funcs{}, old)
	var out strings.Builder
	if err := runs.Retry(t.Context(), c, key, unchanged, &out); err != nil || out.String() != "Run a-2 was submitted in namespace blue\n" {
		t.Fatal(&out, err)
	}
	got := &v1alpha1.Run{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "a-2"}, got); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "a-2", ResourceVersion: "1", Labels: old.Labels, Annotations: map[string]string{
		"workload.codeflare.dev.appwrapper/retryLimit": "1", "codeflare.dev/retry-of": "a",
	}}}
	want.Spec.Application.Name, want.Spec.Workers = "survey", &workers
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestARetryOfARunThatGoesOnSaysSo(t *testing.T) {
	var out strings.Builder
	err := runs.Retry(t.Context(), cluster(t, interceptor.Funcs{}, runOf("a", v1alpha1.RunRunning, "")), key, unchanged, &out)
	if err != nil || !strings.HasSuffix(out.String(), "\nRun a has not ended: end it with 'mlbatch cancel run/a'\n") {
		t.Errorf("got %q, %v", &out, err)
	}
}

func TestWhatCannotBeChangedIsOneSentence(t *testing.T) {
	group := schema.GroupResource{Group: "codeflare.dev", Resource: "runs"}
	answering := func(err error) client.WithWatch {
		return cluster(t, interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return err
			},
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
		}, runOf("a", v1alpha1.RunRunning, ""))
	}
	refused := apierrors.NewInvalid(schema.GroupKind{Group: "codeflare.dev", Kind: "Run"}, "a", nil)
	for name, row := range map[string]struct {
		c             client.WithWatch
		cancel, retry string
	}{
		"a Run that is not there":  {cluster(t, interceptor.Funcs{}), "there is no Run a in namespace blue: see 'mlbatch list", "there is no Run a in namespace blue"},
		"without the right":        {answering(forbidden("runs")), "cannot cancel Run a: runs.codeflare.dev", "cannot create Run a-2: runs.codeflare.dev"},
		"what the server refuses":  {answering(refused), `cannot cancel Run a: Run.codeflare.dev "a" is invalid`, `cannot create Run a-2: Run.codeflare.dev "a" is invalid`},
		"deleted at this moment":   {answering(apierrors.NewNotFound(group, "a")), "there is no Run a in namespace blue", "cannot create Run a-2: "},
		"a conflict":               {answering(apierrors.NewConflict(group, "a", errors.New("the object\nhas been modified"))), "cannot cancel Run a: ", "cannot create Run a-2: "},
		"a retry at the same time": {answering(apierrors.NewAlreadyExists(group, "a-2")), "cannot cancel Run a: ", "another Run a-2 was created at this moment: run the command again"},
		"no definitions":           {noDefinitions(t), "the cluster does not know Runs: ", "the cluster does not know Runs: "},
		"no cluster":               {gone(t), "cannot read Run a: ", "cannot read Run a: "},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			wording.OneSentence(t, out.String(), runs.Cancel(t.Context(), row.c, key, &out), row.cancel)
			wording.OneSentence(t, out.String(), runs.Retry(t.Context(), row.c, key, unchanged, &out), row.retry)
		})
	}
}
