// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/bench"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

const (
	// authors is how many clients write at the same time.
	authors = 8
	// limit is for a step of all lives of a scenario.
	limit = 20 * time.Minute
)

// lives are those of one run of a scenario, as a watch tells them.
type lives struct {
	*testing.T
	bench.Scenario
	admin     client.WithWatch
	namespace string

	mu    sync.Mutex
	began map[string]map[string]time.Time // by step, by name
	took  map[string][]time.Duration      // by step
	jobs  map[types.UID]bool              // all that there ever were, if they are followed
	first map[string]types.UID            // the pod that fails, by name; only its watch uses it
}

func (l *lives) watch() {
	l.Helper()
	var list client.ObjectList = &workload.AppWrapperList{}
	switch {
	case l.Bare:
		list = &batchv1.JobList{}
	case l.Runs:
		list = &v1alpha1.RunList{}
		sandbox.Follow(l.T, l.admin, &corev1.PodList{}, l.limitPod, client.InNamespace(l.namespace))
	case l.Failing:
		l.first = map[string]types.UID{}
		sandbox.Follow(l.T, l.admin, &corev1.PodList{}, l.failFirst, client.InNamespace(l.namespace))
	}
	sandbox.Follow(l.T, l.admin, list, l.hear, client.InNamespace(l.namespace))
}

const runFor = "localcluster.mlbatch.dev/run-for"

// limitPod says how long a pod runs: an Application cannot.
func (l *lives) limitPod(pod *corev1.Pod, gone bool) {
	if _, limited := pod.Annotations[runFor]; limited || gone {
		return
	}
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, runFor, l.RunFor.Duration)
	err := l.admin.Patch(l.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil && l.Context().Err() == nil {
		l.Errorf("cannot limit pod %s: %v", pod.Name, err)
	}
}

// failFirst lets the first pod of a life fail when it runs, and the next one end.
func (l *lives) failFirst(pod *corev1.Pod, gone bool) {
	if gone || pod.Status.Phase != corev1.PodRunning {
		return
	}
	life := pod.Labels[workload.AppWrapperLabel]
	switch l.first[life] {
	case "":
		l.first[life] = pod.UID
		l.begin(life, bench.ToAgain)
		err := l.admin.Status().Patch(l.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, failed()))
		if err != nil && l.Context().Err() == nil {
			l.Errorf("cannot let pod %s fail: %v", pod.Name, err)
		}
	case pod.UID: // it has failed
	default:
		l.end(bench.ToAgain, life)
		l.limitPod(pod, gone)
	}
}

func (l *lives) hear(o client.Object, gone bool) {
	if gone {
		l.end(bench.ToGone, o.GetName())
		return
	}
	if suspended(o) {
		l.end(toSuspended, o.GetName())
	}
	running, succeeded := state(o)
	if running || succeeded {
		l.end(bench.ToRunning, o.GetName())
	}
	if succeeded {
		l.end(bench.ToSucceeded, o.GetName())
	}
}

// toSuspended is how long it takes until a life waits to begin.
const toSuspended = "to Suspended"

// suspended: its controller has seen that it is to wait.
func suspended(o client.Object) bool {
	switch o := o.(type) {
	case *workload.AppWrapper:
		return o.Status.Phase == workload.AppWrapperSuspended
	case *batchv1.Job:
		return slices.ContainsFunc(o.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
		})
	}
	return false
}

func state(o client.Object) (running, succeeded bool) {
	switch o := o.(type) {
	case *workload.AppWrapper:
		return o.Status.Phase == workload.AppWrapperRunning, o.Status.Phase == workload.AppWrapperSucceeded
	case *batchv1.Job:
		complete := slices.ContainsFunc(o.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
		})
		return o.Status.Active > 0, complete
	case *v1alpha1.Run:
		return o.Status.Phase == v1alpha1.RunRunning, o.Status.Phase == v1alpha1.RunSucceeded
	}
	return false, false
}

func (l *lives) begin(name string, steps ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, step := range steps {
		if l.began[step] == nil {
			l.began[step] = map[string]time.Time{}
		}
		l.began[step][name] = time.Now()
	}
}

func (l *lives) end(step, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if began, waits := l.began[step][name]; waits {
		l.took[step] = append(l.took[step], time.Since(began))
		delete(l.began[step], name)
	}
}

// await waits until all lives have come to a step.
func (l *lives) await(step string) {
	l.Helper()
	err := sandbox.Within(l.Context(), limit, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := len(l.took[step]); n < l.Number {
			return fmt.Errorf("%d of %d", n, l.Number)
		}
		return nil
	})
	if err != nil {
		l.Fatalf("%s, %s: %v", l.Name, step, err)
	}
}

// prepare creates what is to be suspended at first, and waits until it is.
func (l *lives) prepare() {
	l.Helper()
	if !l.Suspended {
		return
	}
	l.each(func(ctx context.Context, i int) error {
		o := l.object(i)
		l.begin(o.GetName(), toSuspended)
		return l.admin.Create(ctx, o)
	})
	l.await(toSuspended)
}

// start lets a life begin: it is created, or unsuspended.
func (l *lives) start(ctx context.Context, o client.Object) error {
	l.begin(o.GetName(), bench.ToRunning, bench.ToSucceeded)
	if !l.Suspended {
		return l.admin.Create(ctx, o)
	}
	return l.admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"suspend": false}}`)))
}

// play lets all lives begin, and waits until they have succeeded.
func (l *lives) play() {
	l.Helper()
	var tick <-chan time.Time
	if l.PerSecond > 0 {
		ticker := time.NewTicker(time.Duration(float64(time.Second) / l.PerSecond))
		defer ticker.Stop()
		tick = ticker.C
	}
	l.each(func(ctx context.Context, i int) error {
		if tick != nil {
			select {
			case <-tick:
			case <-ctx.Done():
			}
		}
		return l.start(ctx, l.object(i))
	})
	l.await(bench.ToSucceeded)
}

// clear deletes everything, and waits until it is gone.
func (l *lives) clear() {
	l.Helper()
	l.each(func(ctx context.Context, i int) error {
		o := l.object(i)
		l.begin(o.GetName(), bench.ToGone)
		return l.admin.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	l.await(bench.ToGone)
	for _, kind := range []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("PodList"), workload.GroupVersion.WithKind("AppWrapperList")} {
		if err := sandbox.Within(l.Context(), limit, func() error { return l.left(kind) }); err != nil {
			l.Fatalf("%s: %v", l.Name, err)
		}
	}
}

// left is an error if an object is left.
func (l *lives) left(kind schema.GroupVersionKind) error {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(kind)
	err := l.admin.List(l.Context(), all, client.InNamespace(l.namespace), client.Limit(1))
	if err == nil && len(all.Items) > 0 {
		err = fmt.Errorf("%s is left", all.Items[0].Name)
	}
	return err
}

func (l *lives) each(do func(ctx context.Context, i int) error) {
	l.Helper()
	all, ctx := errgroup.WithContext(l.Context())
	next := atomic.Int64{}
	for range authors {
		all.Go(func() error {
			for i := int(next.Add(1)) - 1; i < l.Number; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		l.Fatal(err)
	}
}

// padding makes a template as large as that of a usual job: 4 KiB.
var padding = strings.Repeat("x", 3<<10)

func (l *lives) object(i int) client.Object {
	name := fmt.Sprintf("life-%04d", i)
	if l.Runs {
		return sandbox.RunOf(sandbox.Program(l.namespace), name)
	}
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Parallelism: &l.Pods, Completions: &l.Pods, BackoffLimit: new(int32), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: l.limits()},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/work:1", Env: []corev1.EnvVar{{Name: "PADDING", Value: padding}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
			}}, Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}},
		}},
	}
	if l.Bare {
		job.Namespace, job.Spec.Suspend = l.namespace, ptr.To(l.Queued || l.Suspended)
		l.enqueue(job)
		return job
	}
	raw, err := json.Marshal(job)
	if err != nil {
		panic(err) // a Job is JSON
	}
	aw := &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec: workload.AppWrapperSpec{Suspend: l.Queued || l.Suspended, Components: []workload.AppWrapperComponent{
			{Template: runtime.RawExtension{Raw: raw}},
		}},
	}
	if l.Failing {
		aw.Annotations = map[string]string{workload.RetryPausePeriodDurationAnnotation: "0s"}
	}
	l.enqueue(aw)
	return aw
}

// limits says how long pods run, except those of which the first is to fail.
func (l *lives) limits() map[string]string {
	if l.Failing {
		return nil
	}
	return map[string]string{runFor: l.RunFor.Duration.String()}
}

// enqueue names the queue, if there is one.
func (l *lives) enqueue(o client.Object) {
	if l.Queued {
		o.SetLabels(map[string]string{workload.QueueNameLabel: queue})
	}
}
