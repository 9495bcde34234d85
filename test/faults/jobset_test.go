// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/mlbatch/mlbatch/test/sandbox"
)

// jobSets is JobSet alone: the whole set is restarted when a Job fails. Kueue does not know its namespace.
var jobSets = rival{
	name: "JobSet", namespace: "rival-jobset",
	prepare: func(t *testing.T) {
		sandbox.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rival-jobset"}})
	},
	run: func(spec batchv1.JobSpec) client.Object {
		policy := &jobset.FailurePolicy{MaxRestarts: 100}
		if spec.PodFailurePolicy != nil {
			policy.Rules = []jobset.FailurePolicyRule{{
				Name: "final", Action: jobset.FailJobSet, OnJobFailureReasons: []string{batchv1.JobReasonPodFailurePolicy},
			}}
		}
		return &jobset.JobSet{Spec: jobset.JobSetSpec{
			FailurePolicy:  policy,
			ReplicatedJobs: []jobset.ReplicatedJob{{Name: "main", Replicas: 1, Template: batchv1.JobTemplateSpec{Spec: spec}}},
		}}
	},
	follow: func(t *testing.T, name string, wrong func()) {
		sandbox.Follow(t, admin, &jobset.JobSetList{}, func(js *jobset.JobSet, _ bool) {
			if js.Status.Restarts > 0 || meta.IsStatusConditionTrue(js.Status.Conditions, string(jobset.JobSetFailed)) {
				wrong()
			}
		}, client.InNamespace("rival-jobset"), client.MatchingFields{"metadata.name": name})
	},
}
