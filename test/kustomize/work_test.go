// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package kustomize_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// gang is a job of a team.
type gang struct {
	team, name string
	pods, gpus int
}

// submit creates the AppWrapper of a gang as a member does.
func (s *site) submit(g gang) error {
	s.Helper()
	text, err := os.ReadFile("testdata/work.yaml")
	s.Must(err)
	aw := &unstructured.Unstructured{}
	filled := strings.NewReplacer("NAME", g.name, "PODS", strconv.Itoa(g.pods), "GPUS", strconv.Itoa(g.gpus)).Replace(string(text))
	s.Must(yaml.Unmarshal([]byte(filled), &aw.Object))
	aw.SetNamespace(g.team)
	return s.alice.Create(s.Context(), aw)
}

// list is the gang's pods.
func (s *site) list(g gang) []corev1.Pod {
	s.Helper()
	pods := &corev1.PodList{}
	s.Must(s.admin.List(s.Context(), pods, client.InNamespace(g.team), client.MatchingLabels{batchv1.JobNameLabel: g.name}))
	return pods.Items
}

// lives says which pods a gang has, and how often they have started.
func (s *site) lives(gangs ...gang) map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, g := range gangs {
		for _, p := range s.list(g) {
			restarts := int32(0)
			for _, c := range p.Status.ContainerStatuses {
				restarts += c.RestartCount
			}
			all[g.team+"/"+p.Name] = fmt.Sprintf("%s %s, %d restarts, deleted: %v", p.UID, p.Status.Phase, restarts, p.DeletionTimestamp)
		}
	}
	return all
}

// untilRunning waits until all pods of the gang run.
func (s *site) untilRunning(g gang) {
	s.Helper()
	s.untilPhase(g, workload.AppWrapperRunning)
	s.Await(g.name+" runs", func() error {
		running := 0
		for _, p := range s.list(g) {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != g.pods {
			return fmt.Errorf("%d of %d pods run", running, g.pods)
		}
		return nil
	})
}

func (s *site) untilPhase(g gang, want workload.AppWrapperPhase) {
	s.Helper()
	s.Await(fmt.Sprintf("%s of %s is %s", g.name, g.team, want), func() error {
		aw := &workload.AppWrapper{}
		err := s.admin.Get(s.Context(), client.ObjectKey{Namespace: g.team, Name: g.name}, aw)
		if err == nil && aw.Status.Phase != want {
			err = fmt.Errorf("it is %s: %v", aw.Status.Phase, aw.Status.Conditions)
		}
		return err
	})
}

// waits fails if the gang has pods.
func (s *site) waits(g gang) {
	s.Helper()
	if pods := s.list(g); len(pods) > 0 {
		s.Errorf("%s of %s should wait, but has %d pods", g.name, g.team, len(pods))
	}
}

// ends lets the pods of a gang succeed.
func (s *site) ends(g gang) {
	s.Helper()
	for _, p := range s.list(g) {
		before := p.DeepCopy()
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations["localcluster.mlbatch.dev/run-for"] = "1s"
		s.Must(s.admin.Patch(s.Context(), &p, client.MergeFrom(before)))
	}
	s.Await("the pods of "+g.name+" have succeeded", func() error {
		for _, p := range s.list(g) {
			if p.Status.Phase != corev1.PodSucceeded {
				return errors.New(p.Name + " is " + string(p.Status.Phase))
			}
		}
		return nil
	})
}
