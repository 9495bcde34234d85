// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
)

// until waits until ask returns nil.
func (s *site) until(what string, ask func(context.Context) error) {
	s.Helper()
	patience.Await(s, what, ask)
}

// submit creates the object in a file of testdata/work as a member of the team. It replaces
// NAME in the file.
func (s *site) submit(file, name string) *unstructured.Unstructured {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "work", file+".yaml"))
	s.must(err)
	object := &unstructured.Unstructured{}
	s.must(yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "NAME", name)), &object.Object))
	s.must(s.alice.Create(s.Context(), object))
	return object
}

// submitAll submits all sorts of work: AppWrappers that run, wait and are held, and kinds that
// members may create without an AppWrapper.
func (s *site) submitAll() {
	s.Helper()
	for _, name := range []string{"steady", "training", "first"} {
		s.submit(name, name)
	}
	s.submit("bare", "bare")
	s.submit("ray", "ray")
	for _, aw := range []client.ObjectKey{{Namespace: "blue", Name: "steady"}, {Namespace: "blue", Name: "training"}, {Namespace: "green", Name: "first"}} {
		s.untilPhase(aw, workload.AppWrapperRunning)
	}
	s.untilPodsRun("blue", 3)
	s.untilPodsRun("green", 3)
	s.untilHeard("the RayCluster is ready", "ray.io/v1", "RayCluster", "green/ray", "status.state", "ready")
	waiting, held := s.submit("waiting", "waiting"), s.submit("held", "held")
	// It runs first: a Suspended one might be just about to start.
	s.untilPhase(client.ObjectKeyFromObject(held), workload.AppWrapperRunning)
	s.deactivate(held)
	s.untilPhase(client.ObjectKeyFromObject(held), workload.AppWrapperSuspended)
	s.until("the held one has given its quota back", func(ctx context.Context) error {
		w, err := s.workloadOf(ctx, held)
		if err == nil && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved) {
			return errors.New("it is reserved")
		}
		return err
	})
	s.until("the status of the waiting one says why", func(ctx context.Context) error {
		aw := &workload.AppWrapper{}
		err := s.admin.Get(ctx, client.ObjectKeyFromObject(waiting), aw)
		if err == nil && meta.FindStatusCondition(aw.Status.Conditions, string(workload.QuotaReserved)) == nil {
			return errors.New("it says nothing")
		}
		return err
	})
	s.untilPodsRun("blue", 3)
}

// deactivate sets spec.active=false, as a user does to hold queued work.
func (s *site) deactivate(owner client.Object) {
	s.Helper()
	s.until("the Workload of "+owner.GetName()+" is deactivated", func(ctx context.Context) error {
		w, err := s.workloadOf(ctx, owner)
		if err != nil {
			return err
		}
		return s.admin.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"active": false}}`)))
	})
}

func (s *site) workloadOf(ctx context.Context, owner client.Object) (*kueue.Workload, error) {
	list := &kueue.WorkloadList{}
	if err := s.admin.List(ctx, list, client.InNamespace(owner.GetNamespace())); err != nil {
		return nil, err
	}
	for i, w := range list.Items {
		if len(w.OwnerReferences) > 0 && w.OwnerReferences[0].UID == owner.GetUID() {
			return &list.Items[i], nil
		}
	}
	return nil, errors.New("there is no Workload")
}

func (s *site) untilPhase(key client.ObjectKey, phase workload.AppWrapperPhase) {
	s.Helper()
	s.until(fmt.Sprintf("AppWrapper %s is %s", key, phase), func(ctx context.Context) error {
		aw := &workload.AppWrapper{}
		if err := s.admin.Get(ctx, key, aw); err != nil {
			return err
		}
		if aw.Status.Phase != phase {
			return fmt.Errorf("it is %s: %+v", aw.Status.Phase, aw.Status.Conditions)
		}
		return nil
	})
}

// untilPodsRun waits until a team has exactly so many pods that have not succeeded, and all run.
func (s *site) untilPodsRun(team string, want int) {
	s.Helper()
	s.until(fmt.Sprintf("%d pods of %s run", want, team), func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := s.admin.List(ctx, pods, client.InNamespace(team)); err != nil {
			return err
		}
		running, all := 0, 0
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodSucceeded {
				all++
			}
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != want || all != want {
			return fmt.Errorf("%d of %d run", running, all)
		}
		return nil
	})
}

// untilHeard waits until a field of an object has this value.
func (s *site) untilHeard(what, apiVersion, kind, name, field, want string) {
	s.Helper()
	namespace, name, _ := strings.Cut(name, "/")
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	s.until(what, func(ctx context.Context) error {
		if err := s.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			return err
		}
		if got := fmt.Sprint(dig(object.Object, strings.Split(field, "."))); got != want {
			return fmt.Errorf("%s is %s, not %s", field, got, want)
		}
		return nil
	})
}

// untilGone waits until an AppWrapper does not exist.
func (s *site) untilGone(key client.ObjectKey) {
	s.Helper()
	s.until(fmt.Sprintf("AppWrapper %s is gone", key), func(ctx context.Context) error {
		err := s.admin.Get(ctx, key, &workload.AppWrapper{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}
