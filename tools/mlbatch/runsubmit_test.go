// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// served returns a cluster with some objects.
func served(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := runs.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, meta.RESTScopeNamespace)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blue"}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "default-priority"}})
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).Build()
}

func TestARunThatCannotBePlannedNeedsSkipChecks(t *testing.T) {
	_, file := example(t, researchers, withData)
	for name, row := range map[string]struct {
		submission       runSubmission
		noSizes          bool
		out, notes, says string
		runs             int
	}{
		"a Run that fits":              {out: "Run digits-1 was submitted in namespace blue\n", notes: "note: Run digits-1: there is no PersistentVolumeClaim pictures in namespace blue", runs: 1},
		"one without a size":           {noSizes: true, says: "Run digits-1: there is no size xs, nor any other: an administrator adds a RunSizeConfiguration; use --skip-checks to submit it anyway"},
		"one that is submitted anyway": {noSizes: true, submission: runSubmission{skipChecks: true}, out: "was submitted", notes: "note: Run digits-1: there is no size xs", runs: 1},
		"a dry run":                    {submission: runSubmission{dryRun: true}, out: "# Run digits-1: 1 worker of 1 cpu, 4Gi memory"},
		"a dry run without a plan":     {noSizes: true, submission: runSubmission{dryRun: true, skipChecks: true}, notes: "there is no size xs", says: "there is no plan without the checks: use 'mlbatch run plan'"},
	} {
		t.Run(name, func(t *testing.T) {
			c := served(t)
			if !row.noSizes {
				sizes := runplan.DefaultSizes()
				c = served(t, &sizes)
			}
			manifests, err := runs.Read([]string{file}, nil, "blue")
			if err != nil {
				t.Fatal(err)
			}
			var out, notes bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			cmd.SetErr(&notes)
			err = row.submission.submit(t.Context(), cmd, c, manifests)
			if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.HasPrefix(err.Error(), row.says)) {
				t.Errorf("got %v, want %s", err, row.says)
			}
			if !strings.Contains(out.String(), row.out) || row.out == "" && out.Len() > 0 || !strings.Contains(notes.String(), row.notes) {
				t.Errorf("it prints %s and notes %s", &out, &notes)
			}
			var all v1alpha1.RunList
			if err := c.List(t.Context(), &all); err != nil || len(all.Items) != row.runs {
				t.Errorf("%d Runs were submitted, %v", len(all.Items), err)
			}
		})
	}
}
