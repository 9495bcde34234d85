// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// The sample of the demo's last act: a member names a program and a size, and two pods train.
// What runs counts as the member's, not as the controller's.
func TestARunTrainsOnTwoPods(t *testing.T) {
	testenv.Test(t, features.New("run").Assess("two pods learn together", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods, needs.PyTorchJobs, needs.Gangs, needs.Runs)
		// The Application comes last: the Run waits for it.
		run := s.createSample(ctx, "Run")
		s.untilRun(ctx, run, v1alpha1.RunPending)
		if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.Accepted); c == nil || c.Reason != "ApplicationNotFound" {
			t.Errorf("a Run without an Application says %+v", c)
		}
		s.createSample(ctx, "Application")
		s.untilRun(ctx, run, v1alpha1.RunSucceeded)

		aw := &workload.AppWrapper{}
		if err := s.admin.Get(ctx, run.Name, s.namespace, aw); err != nil {
			t.Fatal(err)
		}
		if got := aw.Labels["workload.codeflare.dev/user"]; got != "ruth" {
			t.Errorf("it counts as the work of %q", got)
		}
		if run.Status.AppWrapper == nil || run.Status.AppWrapper.UID != aw.UID || run.Status.StartTime == nil || run.Status.CompletionTime == nil ||
			run.Status.Resolved == nil || run.Status.Resolved.Workers != 2 || run.Status.Retries != 0 {
			t.Errorf("its status is %+v", run.Status)
		}
		s.hasTrainedTheDigits(ctx, run.Name)
		return ctx
	}).Feature())
}

// sleeps sleeps for an hour, and ends when it is told to.
const sleeps = `trap "exit 0" TERM; sleep 3600 & wait`

// A Run that waits for quota says so, a cancelled one gives its quota to the next, and one that
// fails keeps its last words.
func TestARunWaitsIsCancelledAndFails(t *testing.T) {
	testenv.Test(t, features.New("runs").Assess("quota goes to the next", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods, needs.Runs)
		s.create(ctx, s.program("sleeper", sleeps))
		s.create(ctx, s.program("failing", "echo no data; exit 7"))

		s.create(ctx, s.program("quick", "true"))
		short, forgotten := execution("short", "sleeper", "50m"), execution("forgotten", "quick", "50m")
		short.Spec.ActiveDeadlineSeconds, forgotten.Spec.TTLSecondsAfterFinished = ptr.To[int64](2), ptr.To[int32](1)
		s.create(ctx, short)
		s.create(ctx, forgotten)
		first := execution("first", "sleeper", "700m")
		s.create(ctx, first)
		s.untilRun(ctx, first, v1alpha1.RunRunning)
		second := execution("second", "sleeper", "700m")
		s.create(ctx, second)
		s.untilRun(ctx, second, v1alpha1.RunQueued)

		if err := s.patch(ctx, "codeflare.dev/v1alpha1", "Run", "first", `{"spec":{"cancel":true}}`); err != nil {
			t.Fatal(err)
		}
		s.untilRun(ctx, first, v1alpha1.RunCancelled)
		s.untilRun(ctx, second, v1alpha1.RunRunning)
		s.until(ctx, "the AppWrapper of a cancelled Run goes", func(ctx context.Context) (string, error) {
			return s.stillThere(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "first"}})
		})

		third := execution("third", "failing", "100m")
		third.Annotations = map[string]string{workload.RetryLimitAnnotation: "0"}
		s.create(ctx, third)
		s.untilRun(ctx, third, v1alpha1.RunFailed)
		if f := third.Status.LastFailure; f == nil || f.ExitCode == nil || *f.ExitCode != 7 || !strings.Contains(f.Message, "no data") {
			t.Errorf("its last failure is %+v", f)
		}
		s.untilWhyNames(ctx, cfg, map[explain.Code]string{"RunFailed": third.Name})
		s.endsByTheClock(ctx, short, forgotten)
		// Whoever deletes a Run deletes its work.
		s.remove(ctx, second)
		s.until(ctx, "the AppWrapper of a deleted Run goes", func(ctx context.Context) (string, error) {
			return s.stillThere(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "second"}})
		})
		return ctx
	}).Feature())
}

// endsByTheClock: one Run has run longer than it may, and the other is forgotten after its end.
func (s *story) endsByTheClock(ctx context.Context, short, forgotten *v1alpha1.Run) {
	s.t.Helper()
	s.untilRun(ctx, short, v1alpha1.RunFailed)
	if c := meta.FindStatusCondition(short.Status.Conditions, v1alpha1.Failed); c == nil || c.Reason != "DeadlineExceeded" {
		s.t.Errorf("a Run that took too long says %+v", c)
	}
	s.until(ctx, "the Run with a time to live goes", func(ctx context.Context) (string, error) {
		err := s.admin.Get(ctx, forgotten.Name, s.namespace, forgotten)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return fmt.Sprintf("it is %s: %s", forgotten.Status.Phase, forgotten.Status.Message), err
	})
	for _, run := range []*v1alpha1.Run{short, forgotten} {
		s.until(ctx, "the AppWrapper of "+run.Name+" goes", func(ctx context.Context) (string, error) {
			return s.stillThere(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: run.Name}})
		})
	}
}

// Nobody gets more by a Run than by an AppWrapper of their own.
func TestARunActsForItsAuthorOnly(t *testing.T) {
	testenv.Test(t, features.New("authors").Assess("rights are the author's", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.Runs)
		s.create(ctx, s.program("sleeper", sleeps))
		forged := map[string]string{
			v1alpha1.AuthorAnnotation: "admin", v1alpha1.AuthorMayAnnotation: "jobs.batch,appwrappers.workload.codeflare.dev",
		}

		// A user who may make Runs and nothing else.
		s.letMakeRuns(ctx, "rick")
		run := execution("powerless", "sleeper", "100m")
		run.Annotations, run.Namespace = forged, s.namespace
		if err := as(t, cfg, "rick").Create(ctx, run); err != nil {
			t.Fatal(err)
		}
		s.created = append(s.created, run)
		s.until(ctx, "it says that its author may not", func(ctx context.Context) (string, error) {
			if err := s.admin.Get(ctx, run.Name, s.namespace, run); err != nil {
				return "", err
			}
			c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.Accepted)
			if c == nil || c.Reason != "Forbidden" {
				return fmt.Sprintf("it says %+v", c), nil
			}
			return "", nil
		})
		if got := run.Annotations[v1alpha1.AuthorAnnotation]; got != "rick" {
			t.Errorf("its author is %q", got)
		}
		if missing, err := s.stillThere(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "powerless"}}); missing != "" || err != nil {
			t.Errorf("it has an AppWrapper (%v)", err)
		}

		s.leaves(ctx, as(t, cfg, "e2e-leaver"))

		// A member cannot become another author, nor pass work off as a Run's.
		own := execution("own", "sleeper", "100m")
		s.create(ctx, own)
		s.untilRun(ctx, own, v1alpha1.RunRunning, v1alpha1.RunStarting)
		for annotation := range forged {
			err := s.patch(ctx, "codeflare.dev/v1alpha1", "Run", "own", `{"metadata":{"annotations":{"`+annotation+`":"admin"}}}`)
			if err == nil || !strings.Contains(err.Error(), "leave "+annotation+" as it is") {
				t.Errorf("a member changed %s: %v", annotation, err)
			}
		}
		spoof := wrapped("spoof", job("spoof", "100m", "linger", "0s"), nil)
		isController := true
		spoof.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "codeflare.dev/v1alpha1", Kind: "Run", Name: own.Name, UID: own.UID, Controller: &isController,
		}}
		spoof.Namespace = s.namespace
		s.created = append(s.created, spoof)
		if err := s.user.Create(ctx, spoof); err == nil || !strings.Contains(err.Error(), "only controllers may create objects that another object controls") {
			t.Errorf("a member made an AppWrapper that a Run controls: %v", err)
		}
		return ctx
	}).Feature())
}

// leaves: somebody makes a Run that waits, and leaves the team. The Run never starts.
func (s *story) leaves(ctx context.Context, leaver client.Client) {
	s.t.Helper()
	s.bind(ctx, "mlbatch-edit", "e2e-leaver")
	run := execution("left-behind", "later", "100m")
	run.Namespace = s.namespace
	s.until(ctx, "the Run is made", func(ctx context.Context) (string, error) {
		if err := leaver.Create(ctx, run); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
	s.created = append(s.created, run)
	if err := s.admin.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "e2e-leaver", Namespace: s.namespace}}); err != nil {
		s.t.Fatal(err)
	}
	s.untilMember(ctx, false, "e2e-leaver")
	time.Sleep(11 * time.Second) // so long at most, a right that was seen counts
	s.create(ctx, s.program("later", sleeps))
	s.until(ctx, "it says that its author has left", func(ctx context.Context) (string, error) {
		if err := s.admin.Get(ctx, run.Name, s.namespace, run); err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.Accepted)
		if c == nil || c.Reason != "Forbidden" || !strings.Contains(c.Message, "may no longer create") {
			return fmt.Sprintf("it says %+v", c), nil
		}
		return "", nil
	})
	if missing, err := s.stillThere(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "left-behind"}}); missing != "" || err != nil {
		s.t.Errorf("it has an AppWrapper (%v)", err)
	}
}

// letMakeRuns gives a user the right to make Runs, and no other.
func (s *story) letMakeRuns(ctx context.Context, user string) {
	s.t.Helper()
	meta := metav1.ObjectMeta{Name: "e2e-makes-runs", Namespace: s.namespace}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"codeflare.dev"}, Resources: []string{"runs"}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		if err := s.admin.Create(ctx, object); err != nil {
			s.t.Fatalf("cannot give %s rights: %v", user, err)
		}
		s.created = append(s.created, object)
	}
}

// program is a shell Application in the image of the digits.
func (s *story) program(name, command string) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ApplicationSpec{API: v1alpha1.APIShell, Image: here.Training.Name, Command: command},
	}
}

// execution is a Run of one worker.
func execution(name, application, cpu string) *v1alpha1.Run {
	one := int32(1)
	return &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RunSpec{
			Application: v1alpha1.ApplicationReference{Name: application}, Workers: &one,
			Resources: v1alpha1.Resources{corev1.ResourceCPU: v1alpha1.MustParseAmount(cpu), corev1.ResourceMemory: v1alpha1.MustParseAmount("64Mi")},
		},
	}
}

// createSample creates the object of a kind of the sample, as the member does who has changed
// its image.
func (s *story) createSample(ctx context.Context, kind string) *v1alpha1.Run {
	s.t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "samples", "codeflare", "digits.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); err != nil {
			s.t.Fatalf("the sample has no %s: %v", kind, err)
		}
		if object.GetKind() != kind {
			continue
		}
		if kind == v1alpha1.ApplicationKind {
			if err := unstructured.SetNestedField(object.Object, here.Training.Name, "spec", "image"); err != nil {
				s.t.Fatal(err)
			}
		}
		s.create(ctx, object)
		return &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), UID: object.GetUID()}}
	}
}

// untilRun waits until a Run is in one of these phases.
func (s *story) untilRun(ctx context.Context, run *v1alpha1.Run, phases ...v1alpha1.RunPhase) {
	s.t.Helper()
	s.until(ctx, fmt.Sprintf("Run %s becomes %s", run.Name, phases), func(ctx context.Context) (string, error) {
		if err := s.admin.Get(ctx, run.Name, s.namespace, run); err != nil {
			return "", err
		}
		for _, phase := range phases {
			if run.Status.Phase == phase {
				return "", nil
			}
		}
		is := fmt.Sprintf("it is %s: %s (%+v)", run.Status.Phase, run.Status.Message, run.Status.LastFailure)
		if run.Status.Phase.Terminal() {
			return "", broken(is)
		}
		return is, nil
	})
}
