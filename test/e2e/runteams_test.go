// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// doomed is a team on the real nodes.
const doomed = `
cohort: ""
sizes: null
controller: {serviceAccount: {namespace: mlbatch-system}, runs: {enabled: true, serviceAccount: {namespace: mlbatch-system}}}
flavors: [{name: e2e-real, create: false}]
teams:
  - {name: e2e-doomed, users: [dirk], quota: {e2e-real: {cpu: 1, memory: 2Gi, pods: 20, nvidia.com/gpu: 0, nvidia.com/roce_gdr: 0}}}`

// One team makes Runs that make no sense, and the namespace of another is deleted while Runs of all sorts
// run in it. A third team's Run runs on, and its next one comes to its end. It may use an Application of
// another team if it may get it.
func TestRunsOfOneTeamDoNotDisturbAnothers(t *testing.T) {
	testenv.Test(t, features.New("teams of Runs").Assess("a Run runs on", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		requires(t, needs.TrainingPods, needs.Runs, needs.Machine)
		keep(t, cfg, "mlbatch-e2e-doomed", "default").apply(ctx, fileOf(t, doomed))
		auditing.expect("e2e-doomed") // pods end after their Workloads are gone
		s, hostile := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods), tell(t, cfg, "e2e-hostile", "mallory", needs.TrainingPods)
		gone := tell(t, cfg, "e2e-doomed", "dirk", needs.TrainingPods)
		s.create(ctx, s.program("sleeper", sleeps))
		steady := execution("steady", "sleeper", "100m")
		s.create(ctx, steady)
		gone.runsOfAllSorts(ctx)
		before := s.controllerOfRuns(ctx)

		hostile.makesNonsense(ctx)
		s.borrows(ctx, hostile)
		gone.untilRunsOfAllSortsRun(ctx)
		s.untilRun(ctx, steady, v1alpha1.RunRunning)
		pod := s.onlyPod(ctx, steady.Name)
		gone.namespaceGoes(ctx)
		hostile.everyRunWasLookedAt(ctx)

		s.untilRun(ctx, steady, v1alpha1.RunRunning)
		if now := s.onlyPod(ctx, steady.Name); now.UID != pod.UID || steady.Status.Retries != 0 {
			t.Errorf("the pod of another team's Run is another one, after %d retries", steady.Status.Retries)
		}
		if now := s.controllerOfRuns(ctx); now != before {
			t.Errorf("the controller of Runs was %s, and is %s", before, now)
		}
		return ctx
	}).Feature())
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	return (&roster{t: t}).file(text)
}

// controllerOfRuns says which pod it is, and how often it has started.
func (s *story) controllerOfRuns(ctx context.Context) string {
	s.t.Helper()
	pods, err := s.api.CoreV1().Pods(platform.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=codeflare"})
	if err != nil || len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
		s.t.Fatalf("there are %d controllers of Runs: %v", len(pods.Items), err)
	}
	return fmt.Sprintf("%s after %d restarts", pods.Items[0].UID, pods.Items[0].Status.ContainerStatuses[0].RestartCount)
}

// sorts are the Runs of runsOfAllSorts, and their AppWrappers.
var sorts = map[string]string{"doomed": "doomed", "tasks": "tasks", "flow": "flow-prepare"}

// runsOfAllSorts makes a Run that sleeps, a queue that waits for tasks, and a workflow in its first step.
func (s *story) runsOfAllSorts(ctx context.Context) {
	s.t.Helper()
	for _, appWrapper := range sorts {
		quota.Expect(types.NamespacedName{Namespace: s.namespace, Name: appWrapper})
	}
	s.untilMember(ctx, true, "dirk")
	s.claim(ctx, "doomed", s.tasks(0))
	s.create(ctx, &v1alpha1.DataSet{
		ObjectMeta: metav1.ObjectMeta{Name: "numbers"}, Spec: v1alpha1.DataSetSpec{PVC: &v1alpha1.PVCSource{ClaimName: "doomed"}},
	})
	s.create(ctx, s.program("sleeper", sleeps))
	queue := s.program("queue", "cat")
	queue.Spec.API = v1alpha1.APIWorkQueue
	s.create(ctx, queue)
	step := v1alpha1.ApplicationReference{Name: "sleeper"}
	s.create(ctx, &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "flow"}, Spec: v1alpha1.ApplicationSpec{
		API: v1alpha1.APIWorkflow, Workflow: &v1alpha1.Workflow{Steps: []v1alpha1.Step{
			{Name: "prepare", Application: step}, {Name: "train", Application: step, DependsOn: []string{"prepare"}},
		}},
	}})
	tasks := execution("tasks", "queue", "50m")
	tasks.Spec.Queue = &v1alpha1.RunQueue{DataSet: v1alpha1.DataSetReference{Name: "numbers"}, Open: true}
	for _, run := range []*v1alpha1.Run{execution("doomed", "sleeper", "50m"), tasks, execution("flow", "flow", "50m")} {
		s.create(ctx, run)
	}
}

func (s *story) untilRunsOfAllSortsRun(ctx context.Context) {
	s.t.Helper()
	for name := range sorts {
		s.untilRun(ctx, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: name}}, v1alpha1.RunRunning)
	}
}

// namespaceGoes deletes the namespace, and what the team has outside of it.
func (s *story) namespaceGoes(ctx context.Context) {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := s.admin.Delete(ctx, namespace); err != nil {
		s.t.Fatal(err)
	}
	s.until(ctx, "the namespace goes", func(ctx context.Context) (string, error) {
		err := s.admin.Get(ctx, s.namespace, "", namespace)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return fmt.Sprintf("it is there: %+v", namespace.Status.Conditions), err
	})
	if err := s.admin.Delete(ctx, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.queue()}}); err != nil {
		s.t.Error(err)
	}
}

// makesNonsense creates what can be created of what nobody should, and as much as fits into an object.
func (s *story) makesNonsense(ctx context.Context) {
	s.t.Helper()
	refused := s.program("kubeflow", "true")
	refused.Spec.API, refused.Namespace = "kubeflow", s.namespace
	if err := s.user.Create(ctx, refused); err == nil || !strings.Contains(err.Error(), "what was kubeflow is a workflow now") {
		s.t.Errorf("an unknown api: %v", err)
	}
	long := map[string]v1alpha1.Text{}
	for i := range 30 {
		long[fmt.Sprintf("LONG_%d", i)] = v1alpha1.Text(strings.Repeat("$(x)ü\n\"'`", 1<<10))
	}
	heavy := s.program("heavy", "true")
	heavy.Spec.Env = long
	many := s.program("many", "train.py")
	many.Spec.API, many.Spec.Torch = v1alpha1.APITorch, &v1alpha1.Torch{Backend: v1alpha1.JobSet}
	odd := s.program("odd", "echo '$(x)' \\`id\\` \"ü\" $$ ; exit 3")
	circle := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "circle"}, Spec: v1alpha1.ApplicationSpec{API: v1alpha1.APIWorkflow, Workflow: &v1alpha1.Workflow{}}}
	for i := range 32 {
		circle.Spec.Workflow.Steps = append(circle.Spec.Workflow.Steps, v1alpha1.Step{
			Name: fmt.Sprint("s", i), Application: v1alpha1.ApplicationReference{Name: "circle"}, DependsOn: []string{fmt.Sprint("s", (i+1)%32)},
		})
	}
	elsewhere := s.program("elsewhere", "true")
	elsewhere.Spec.Inputs = []v1alpha1.Input{{Name: "secrets", Namespace: "e2e-runs"}}
	for _, app := range []*v1alpha1.Application{heavy, many, odd, circle, elsewhere} {
		s.create(ctx, app)
		for i := range 6 {
			run := execution(fmt.Sprintf("%s-%d", app.Name, i), app.Name, "1m")
			run.Labels = map[string]string{v1alpha1.RunLabel: "steady"}
			run.Annotations = map[string]string{workload.RetryLimitAnnotation: "0", "kueue.x-k8s.io/podset-required-topology": strings.Repeat("x", 1<<10)}
			if app == many {
				run.Spec.Workers = ptr.To[int32](10000)
			}
			s.create(ctx, run)
		}
	}
}

// everyRunWasLookedAt fails unless each has a sentence.
func (s *story) everyRunWasLookedAt(ctx context.Context) {
	s.t.Helper()
	s.until(ctx, "every Run has a sentence", func(ctx context.Context) (string, error) {
		var all v1alpha1.RunList
		if err := s.admin.List(ctx, &all); err != nil || len(all.Items) < 30 {
			return fmt.Sprintf("there are %d Runs", len(all.Items)), err
		}
		for _, run := range all.Items {
			if run.Status.Message == "" {
				return run.Name + " has none", nil
			}
		}
		return "", nil
	})
	elsewhere := &v1alpha1.Run{}
	if err := s.admin.Get(ctx, "elsewhere-0", s.namespace, elsewhere); err != nil {
		s.t.Fatal(err)
	}
	if want := "input secrets is in namespace e2e-runs and has to be in the Run's, e2e-hostile"; !strings.Contains(elsewhere.Status.Message, want) {
		s.t.Errorf("it says %q, and not %q", elsewhere.Status.Message, want)
	}
}

// borrows runs an Application of another team, once its member may get it.
func (s *story) borrows(ctx context.Context, lender *story) {
	s.t.Helper()
	lender.create(ctx, lender.program("shared", "echo what was lent"))
	run := execution("borrowed", "shared", "100m")
	run.Spec.Application.Namespace, run.Namespace = lender.namespace, s.namespace
	want := `user "ruth" may not get applications in namespace "` + lender.namespace + `"`
	if err := s.user.Create(ctx, run.DeepCopy()); err == nil || !strings.Contains(err.Error(), want) {
		s.t.Errorf("a Run of an Application that its author may not get: %v", err)
	}
	lender.letGetApplications(ctx, "ruth")
	s.until(ctx, "the Run can be made", func(ctx context.Context) (string, error) {
		return "", s.user.Create(ctx, run.DeepCopy(), client.DryRunAll)
	})
	s.create(ctx, run)
	s.untilRun(ctx, run, v1alpha1.RunSucceeded)
	s.logsOf(ctx, run.Name, "what was lent\n")
	if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.Accepted); c == nil || c.Status != metav1.ConditionTrue {
		s.t.Errorf("it is accepted: %+v", c)
	}
	var theirs workload.AppWrapperList
	if err := lender.admin.List(ctx, &theirs, resources.WithLabelSelector(v1alpha1.RunLabel+"="+run.Name)); err != nil || len(theirs.Items) > 0 {
		s.t.Errorf("%d AppWrappers of it are in %s: %v", len(theirs.Items), lender.namespace, err)
	}
}

// letGetApplications is what an administrator does.
func (s *story) letGetApplications(ctx context.Context, user string) {
	s.t.Helper()
	meta := s.own("e2e-gets-applications")
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"codeflare.dev"}, Resources: []string{"applications"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		if err := s.admin.Create(ctx, object); err != nil {
			s.t.Fatal(err)
		}
		s.created = append(s.created, object)
	}
}
