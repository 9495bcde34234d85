// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package nodes_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const team = "blue"

// work reads the AppWrapper of testdata with another name.
func (s *site) work(name string) *workload.AppWrapper {
	s.Helper()
	text, err := os.ReadFile("testdata/work.yaml")
	s.Must(err)
	aw := &workload.AppWrapper{}
	s.Must(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "NAME", name)), aw))
	return aw
}

func (s *site) submit(name string) {
	s.Helper()
	s.Must(s.trySubmit(name))
}

func (s *site) trySubmit(name string) error {
	s.Helper()
	return client.IgnoreAlreadyExists(s.admin.Create(s.Context(), s.work(name)))
}

func (s *site) remove(name string) {
	s.Helper()
	s.Must(s.admin.Delete(s.Context(), s.work(name)))
}

// runs returns an error if an AppWrapper and its two pods do not run, or if they had to be tried again.
func (s *site) runs(name string) error {
	aw := &workload.AppWrapper{}
	if err := s.admin.Get(s.Context(), client.ObjectKey{Namespace: team, Name: name}, aw); err != nil {
		return err
	}
	if aw.Status.Phase != workload.AppWrapperRunning || aw.Status.Retries != 0 {
		return fmt.Errorf("AppWrapper %s is %s after %d retries", name, aw.Status.Phase, aw.Status.Retries)
	}
	if pods := s.podsOf(name); len(pods) != 2 {
		return fmt.Errorf("AppWrapper %s has the running pods %v", name, pods)
	}
	return nil
}

// podsOf returns the running pods of an AppWrapper.
func (s *site) podsOf(name string) map[string]types.UID {
	s.Helper()
	list := &corev1.PodList{}
	s.Must(s.admin.List(s.Context(), list, client.InNamespace(team), client.MatchingLabels{workload.AppWrapperLabel: name}))
	pods := map[string]types.UID{}
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			pods[pod.Name] = pod.UID
		}
	}
	return pods
}

// asks are the dry runs of a member who keeps submitting.
type asks struct {
	*site
	stop context.CancelFunc
	done sync.WaitGroup
	made int
	// refused has when each refused one began, since the first.
	refused []time.Duration
	last    error
}

func (s *site) keepAsking() *asks {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	a := &asks{site: s, stop: stop}
	work := s.work("asked")
	begin := time.Now()
	a.done.Go(func() {
		for tick := time.Tick(time.Second); ctx.Err() == nil; <-tick {
			asked := time.Since(begin)
			err := s.admin.Create(ctx, work.DeepCopy(), client.DryRunAll)
			if ctx.Err() != nil {
				return
			}
			a.made++
			if err != nil {
				a.refused, a.last = append(a.refused, asked.Round(time.Second)), err
			}
		}
	})
	return a
}

// end prints which were refused. There may be some until the API server knows that the node is lost, and none after.
func (a *asks) end(node string) {
	a.Helper()
	a.stop()
	a.done.Wait()
	a.Logf("%s: %d of %d dry runs were refused, at %v; the last one: %v", node, len(a.refused), a.made, a.refused, a.last)
}
