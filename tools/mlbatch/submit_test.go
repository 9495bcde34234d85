// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
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
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

func TestAJobThatCanNeverBeAdmittedNeedsSkipChecks(t *testing.T) {
	for name, row := range map[string]struct {
		submission submission
		queue      any
		out, notes string
		says       string
		jobs       int
	}{
		"a job that fits":              {out: "AppWrapper train was submitted in namespace blue\nnext: mlbatch why train --namespace blue\n", jobs: 1},
		"a job that does not fit":      {queue: "empty", says: "the job can never be admitted: the job requests 1 of cpu, but ClusterQueue empty has no quota for it; the job requests 1Gi of memory, but ClusterQueue empty has no quota for it; use --skip-checks to submit it anyway"},
		"one that is submitted anyway": {queue: "empty", submission: submission{skipChecks: true}, out: "was submitted", notes: "note: the job can never be admitted: the job requests 1 of cpu", jobs: 1},
		"a dry run":                    {submission: submission{dryRun: true}, out: "\n  namespace: \"blue\"\n"},
		"a dry run that does not fit":  {queue: "empty", submission: submission{dryRun: true}, says: "the job can never be admitted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t)
			job, err := submit.New("0.0.1", map[string]any{"jobName": "train", "containerImage": "a", "queueName": row.queue})
			if err != nil {
				t.Fatal(err)
			}
			if err := job.In("blue", ""); err != nil {
				t.Fatal(err)
			}
			var out, notes bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			cmd.SetErr(&notes)
			err = row.submission.submit(t.Context(), cmd, c, []submit.Job{job})
			if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.HasPrefix(err.Error(), row.says)) {
				t.Errorf("got %v, want %s", err, row.says)
			}
			if !strings.Contains(out.String(), row.out) || row.out == "" && out.Len() > 0 || !strings.Contains(notes.String(), row.notes) {
				t.Errorf("it prints %s and notes %s", &out, &notes)
			}
			var all v1beta2.AppWrapperList
			if err := c.List(t.Context(), &all); err != nil || len(all.Items) != row.jobs {
				t.Errorf("%d jobs were submitted, %v", len(all.Items), err)
			}
		})
	}
}

func TestAnArrayIsSubmittedNumberByNumber(t *testing.T) {
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "sweep-5"}}
	for name, row := range map[string]struct {
		there     []client.Object
		out, says string
		left      int
	}{
		"three numbers": {out: "AppWrapper sweep-3 was submitted in namespace blue\nAppWrapper sweep-4 was submitted in namespace blue\n" +
			"AppWrapper sweep-5 was submitted in namespace blue\nnext: mlbatch status sweep --namespace blue\n", left: 3},
		"a name that is taken": {there: []client.Object{taken}, left: 3, out: "AppWrapper sweep-3 was submitted in namespace blue\nAppWrapper sweep-4 was submitted in namespace blue\n",
			says: "namespace blue already has an AppWrapper sweep-5: delete it, or choose another jobName; 2 of 3 were submitted: 'mlbatch cancel --array sweep' deletes them"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t)
			for _, o := range row.there {
				if err := c.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			s := submission{array: "3-5"}
			jobs, err := s.program("0.0.1", map[string]any{"jobName": "sweep", "containerImage": "a", "queueName": nil}, submit.Program{Script: script})
			if err != nil {
				t.Fatal(err)
			}
			for i := range jobs {
				if err := jobs[i].In("blue", ""); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			err = s.submit(t.Context(), cmd, c, jobs)
			if out.String() != row.out || row.says == "" && err != nil || row.says != "" && (err == nil || err.Error() != row.says) {
				t.Errorf("got %s, %v", &out, err)
			}
			var all v1beta2.AppWrapperList
			if err := c.List(t.Context(), &all); err != nil || len(all.Items) != row.left {
				t.Errorf("%d AppWrappers, %v", len(all.Items), err)
			}
		})
	}
}

// cluster returns a cluster with a queue that has no quota.
func cluster(t *testing.T) client.WithWatch {
	t.Helper()
	scheme, err := submit.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, meta.RESTScopeNamespace)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}}
	local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "empty"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "empty"}}
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(queue, local,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blue"}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "default-priority"}}).Build()
}
