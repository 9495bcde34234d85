// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// patience bounds every wait: it only ends what would hang.
const patience = 4 * time.Minute

// story is one test's view of the cluster: one team's namespace, and the
// rights of one of its members for what a user does.
type story struct {
	t         *testing.T
	namespace string
	admin     *resources.Resources
	user      client.Client
	created   []client.Object
}

// tell begins a story. When the test fails the objects, events and logs that
// explain it are printed.
func tell(t *testing.T, cfg *envconf.Config, namespace, user string) *story {
	t.Helper()
	config := rest.CopyConfig(cfg.Client().RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	admin := cfg.Client().Resources(namespace)
	asUser, err := client.New(config, client.Options{Scheme: admin.GetScheme()})
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, namespace: namespace, admin: admin, user: asUser}
	t.Cleanup(func() {
		if t.Failed() {
			s.explain()
		}
		s.clear()
	})
	return s
}

// create creates an object as the user.
func (s *story) create(ctx context.Context, object client.Object) {
	s.t.Helper()
	object.SetNamespace(s.namespace)
	if err := s.user.Create(ctx, object); err != nil {
		s.t.Fatalf("cannot create %s: %v", object.GetName(), err)
	}
	s.created = append(s.created, object)
}

// clear removes what the story has made, and waits until it is gone: the next
// story wants the nodes.
func (s *story) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, object := range s.created {
		if err := s.admin.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			s.t.Errorf("cannot remove %s: %v", object.GetName(), err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := s.admin.List(ctx, pods)
		return len(pods.Items) == 0, err
	})
	if err != nil {
		s.t.Errorf("pods of %s stay behind: %v", s.namespace, err)
	}
}

// remove deletes an object as the user.
func (s *story) remove(ctx context.Context, object client.Object) {
	s.t.Helper()
	if err := s.user.Delete(ctx, object); err != nil {
		s.t.Fatalf("cannot delete %s: %v", object.GetName(), err)
	}
}

// until waits until a question about the cluster is answered with nothing
// missing.
func (s *story) until(ctx context.Context, what string, missing func(context.Context) (string, error)) {
	s.t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = missing(ctx)
		return err == nil && last == "", err
	})
	if err != nil {
		s.t.Fatalf("%s: %s (%v)", what, last, err)
	}
}

// untilPhase waits until an AppWrapper is in a phase.
func (s *story) untilPhase(ctx context.Context, aw *workload.AppWrapper, phase workload.AppWrapperPhase) {
	s.t.Helper()
	s.until(ctx, fmt.Sprintf("AppWrapper %s becomes %s", aw.Name, phase), func(ctx context.Context) (string, error) {
		err := s.admin.Get(ctx, aw.Name, s.namespace, aw)
		if aw.Status.Phase == phase {
			return "", err
		}
		return "it is " + string(aw.Status.Phase), err
	})
}

// workloadOf returns Kueue's Workload of an object, nil if there is none yet.
func (s *story) workloadOf(ctx context.Context, owner client.Object) (*kueue.Workload, error) {
	list := &kueue.WorkloadList{}
	if err := s.admin.List(ctx, list); err != nil {
		return nil, err
	}
	for i, w := range list.Items {
		if len(w.OwnerReferences) > 0 && w.OwnerReferences[0].UID == owner.GetUID() {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// untilWorkload waits until a condition of an object's Workload has a status.
func (s *story) untilWorkload(ctx context.Context, owner client.Object, condition string, status string) {
	s.t.Helper()
	s.until(ctx, fmt.Sprintf("the Workload of %s has %s=%s", owner.GetName(), condition, status), func(ctx context.Context) (string, error) {
		w, err := s.workloadOf(ctx, owner)
		if err != nil || w == nil {
			return "there is no Workload", err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, condition)
		if c == nil || string(c.Status) != status {
			return fmt.Sprintf("it has %+v", c), nil
		}
		return "", nil
	})
}

// pods lists the pods of an AppWrapper.
func (s *story) pods(ctx context.Context, appWrapper string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := s.admin.List(ctx, list, resources.WithLabelSelector(workload.AppWrapperLabel+"="+appWrapper))
	return list.Items, err
}

// explain prints what a reader of a failed test wants to see.
func (s *story) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, list := range []k8s.ObjectList{&workload.AppWrapperList{}, &kueue.WorkloadList{}, &corev1.PodList{}} {
		if err := s.admin.List(ctx, list); err != nil {
			s.t.Log(err)
			continue
		}
		s.t.Logf("%T in %s:\n%s", list, s.namespace, withoutBookkeeping(list))
	}
	events := &corev1.EventList{}
	if err := s.admin.List(ctx, events); err != nil {
		s.t.Log(err)
	}
	for _, e := range events.Items {
		s.t.Logf("event %s %s/%s %s: %s", e.LastTimestamp.Format(time.TimeOnly), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	s.explainOperators()
}

// explainOperators prints the ends of the operators' logs, which the node
// keeps as files.
func (s *story) explainOperators() {
	logs, _ := filepath.Glob(filepath.Join(site.Cluster.Dir(), "node", "log-pods", "mlbatch-system_*", "*", "*.log"))
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			s.t.Log(err)
			continue
		}
		const end = 4000
		s.t.Logf("%s:\n…%s", path, data[max(0, len(data)-end):])
	}
}
