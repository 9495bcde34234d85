// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
)

func await(t *testing.T, what string, condition func() error) {
	t.Helper()
	patience.Await(t, what, func(context.Context) error { return condition() })
}

func (s *site) isLeftAlone(*testing.T, *life) {}

func (s *site) hasRunningPods(t *testing.T, l *life) {
	await(t, l.name+" has two running pods", func() error {
		running := 0
		for _, p := range s.pods(t, l) {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != 2 {
			return fmt.Errorf("%d run", running)
		}
		return nil
	})
}

func (s *site) fails(t *testing.T, l *life) {
	s.hasRunningPods(t, l)
	pod := s.pods(t, l)[0]
	pod.Status.Phase = corev1.PodFailed
	if err := s.client.Status().Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
}

func (s *site) failsAndIsRemoved(t *testing.T, l *life) {
	s.fails(t, l)
	s.hasNoJob(t, l)
}

func (s *site) hasNoJob(t *testing.T, l *life) {
	await(t, l.name+" has neither Job nor pods", func() error {
		if jobs, pods := len(s.jobs(t, l)), len(s.pods(t, l)); jobs+pods > 0 {
			return fmt.Errorf("%d Jobs and %d pods are there", jobs, pods)
		}
		return nil
	})
}

func (s *site) isSuspended(t *testing.T, l *life) {
	s.hasRunningPods(t, l)
	s.patch(t, l, func(aw *workload.AppWrapper) { aw.Spec.Suspend = true })
}

func (s *site) isUnsuspended(t *testing.T, l *life) {
	s.patch(t, l, func(aw *workload.AppWrapper) { aw.Spec.Suspend = false })
}

func (s *site) isDeleted(t *testing.T, l *life) {
	s.hasRunningPods(t, l)
	s.delete(t, l)
}

func (s *site) delete(t *testing.T, l *life) {
	aw := &workload.AppWrapper{}
	aw.Namespace, aw.Name = l.namespace, l.name
	if err := s.client.Delete(t.Context(), aw); err != nil {
		t.Fatal(err)
	}
}

func (s *site) annotated(annotation, value string) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		s.patch(t, l, func(aw *workload.AppWrapper) {
			if aw.Annotations == nil {
				aw.Annotations = map[string]string{}
			}
			aw.Annotations[workload.AnnotationPrefix+annotation] = value
		})
	}
}

func (s *site) patch(t *testing.T, l *life, change func(*workload.AppWrapper)) {
	t.Helper()
	aw := &workload.AppWrapper{}
	if err := s.client.Get(t.Context(), l.key(), aw); err != nil {
		t.Fatal(err)
	}
	before := aw.DeepCopy()
	change(aw)
	if err := s.client.Patch(t.Context(), aw, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// released removes the finalizers of its Jobs.
func (s *site) released(t *testing.T, l *life) {
	for _, j := range s.jobs(t, l) {
		before := j.DeepCopy()
		j.Finalizers = nil
		if err := s.client.Patch(t.Context(), &j, client.MergeFrom(before)); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// podsEnd lets its pods complete.
func (s *site) podsEnd(t *testing.T, l *life) {
	for _, p := range s.pods(t, l) {
		before := p.DeepCopy()
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[runFor] = "1s"
		if err := s.client.Patch(t.Context(), &p, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}

// quotaIsLifted allows Services in the namespace full.
func (s *site) quotaIsLifted(t *testing.T, _ *life) {
	if err := s.client.DeleteAllOf(t.Context(), &corev1.ResourceQuota{}, client.InNamespace(full)); err != nil {
		t.Fatal(err)
	}
}

func (s *site) awaitPhase(t *testing.T, l *life, want workload.AppWrapperPhase) {
	t.Helper()
	await(t, l.name+" is "+string(want), func() error {
		aw := &workload.AppWrapper{}
		if err := s.client.Get(t.Context(), l.key(), aw); err != nil {
			return err
		}
		if aw.Status.Phase != want {
			return fmt.Errorf("it is %s: %v", aw.Status.Phase, aw.Status.Conditions)
		}
		return nil
	})
}

func (s *site) awaitGone(t *testing.T, l *life) {
	t.Helper()
	await(t, l.name+" is gone", func() error {
		err := s.client.Get(t.Context(), l.key(), &workload.AppWrapper{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}
