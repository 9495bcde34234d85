// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podexec"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

const (
	gpu = corev1.ResourceName("nvidia.com/gpu")
	// image has a shell.
	image = "images.local/mlbatch/torch:1"
	// obeys does what it is ordered to.
	obeys = `mkfifo /tmp/orders; exec 3<>/tmp/orders; while read -r order <&3; do eval "$order"; done`
)

// work is what an AppWrapper runs.
type work struct {
	*room
	name string
	// team is blue unless set.
	team string
	// pods is 1 unless set.
	pods int32
	// gpus of a pod.
	gpus        int64
	annotations map[string]string
	edit        func(*corev1.PodSpec)
	// trains: the generator writes it, with the probe of a progress file.
	trains bool
}

func (w *work) namespace() string { return cmp.Or(w.team, "blue") }

// submit creates the AppWrapper. Its webhooks are not there while the controller is down.
func (w *work) submit() {
	w.Helper()
	create := w.wrapJob
	if w.trains {
		create = w.generate
	}
	w.Await(w.name+" is submitted", create)
}

func (w *work) generate() error {
	settings, err := submit.Settings([]string{"testdata/training.yaml"}, []string{"jobName=" + w.name, fmt.Sprintf("numPods=%d", max(w.pods, 1))}, nil)
	if err != nil {
		return err
	}
	job, err := submit.New("0.0.1", settings)
	if err == nil {
		err = job.In(w.namespace(), "")
	}
	if err == nil {
		err = job.Create(w.Context(), w.admin, w.Output())
	}
	return err
}

func (w *work) wrapJob() error {
	raw, err := json.Marshal(w.job())
	if err != nil {
		return err
	}
	annotations := map[string]string{
		workload.RetryPausePeriodDurationAnnotation: "1s", workload.RetryLimitAnnotation: "1", workload.ForcefulDeletionGracePeriodAnnotation: "30s",
	}
	maps.Copy(annotations, w.annotations)
	return client.IgnoreAlreadyExists(w.admin.Create(w.Context(), &workload.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: w.name, Annotations: annotations},
		Spec:       workload.AppWrapperSpec{Components: []workload.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}}},
	}))
}

// takeYourTime gives the next attempt as long as a busy machine needs: no grace is what a fault is about then.
func (w *work) takeYourTime() {
	w.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"1h",%q:"1h",%q:"1h"}}}`, workload.AdmissionGracePeriodDurationAnnotation,
		workload.WarmupGracePeriodDurationAnnotation, workload.NoProgressGracePeriodDurationAnnotation)
	aw := &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: w.name}}
	w.Await(w.name+" may take its time", func() error {
		return w.admin.Patch(w.Context(), aw.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// job has pods that obey. With GPUs they prefer the real node, and otherwise they must be there.
func (w *work) job() *batchv1.Job {
	amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullNever, Command: []string{"sh", "-c", obeys}}},
	}
	if w.gpus > 0 {
		amount[gpu] = *resource.NewQuantity(w.gpus, resource.DecimalSI)
		spec.Affinity = prefers()
	} else {
		spec.NodeSelector = map[string]string{real: "true"}
		spec.Tolerations = []corev1.Toleration{{Key: broken, Operator: corev1.TolerationOpExists}}
	}
	spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
	if w.edit != nil {
		w.edit(&spec)
	}
	pods := max(w.pods, 1)
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods, BackoffLimit: new(int32), Template: corev1.PodTemplateSpec{Spec: spec}},
	}
}

func prefers() *corev1.Affinity {
	is := corev1.NodeSelectorRequirement{Key: real, Operator: corev1.NodeSelectorOpExists}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
		{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{is}}},
	}}}
}

// await returns the first look since then that a condition is about.
func (w *work) await(what string, since time.Time, condition func(*workload.AppWrapper) bool) (found look) {
	w.Helper()
	w.Await(w.name+" "+what, func() error {
		var ok bool
		if found, ok = w.lives.first(w.name, since, condition); ok {
			return nil
		}
		if end, failed := w.lives.first(w.name, time.Time{}, in(workload.AppWrapperFailed)); failed {
			w.Fatalf("before %s %s, it has failed: %s", w.name, what, why(end.aw))
		}
		return fmt.Errorf("it is not: %s", w.lives.latest(w.name))
	})
	return found
}

// itsPods are the pods that have not ended.
func (w *work) itsPods() []corev1.Pod {
	w.Helper()
	pods := &corev1.PodList{}
	w.Must(w.admin.List(w.Context(), pods, client.InNamespace(w.namespace()), client.MatchingLabels{workload.AppWrapperLabel: w.name}))
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed })
}

// itsWorkload is what Kueue made for it.
func (w *work) itsWorkload() (*kueue.Workload, error) {
	all := &kueue.WorkloadList{}
	if err := w.admin.List(w.Context(), all, client.InNamespace(w.namespace())); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if owner := metav1.GetControllerOf(&all.Items[i]); owner != nil && owner.Kind == workload.AppWrapperKind && owner.Name == w.name {
			return &all.Items[i], nil
		}
	}
	return nil, fmt.Errorf("%s has none of %d Workloads", w.name, len(all.Items))
}

// order tells the program of a pod what to do. It may end before the command does that tells it.
func (r *room) order(pod corev1.Pod, what string) {
	r.Helper()
	r.Await(pod.Name+" takes orders", func() error { return r.sh(pod, `test -p /tmp/orders`, "") })
	if err := r.sh(pod, `echo "$0" >/tmp/orders`, what); err != nil {
		r.Logf("pod %s was ordered to %s: %v", pod.Name, what, err)
	}
}

// sh runs a line of a shell in a pod.
func (r *room) sh(pod corev1.Pod, line, argument string) error {
	var out, said bytes.Buffer
	err := podexec.Run(r.Context(), r.config, pod, podexec.Command{
		Container: podlogs.Container(pod), Line: []string{"sh", "-c", line, argument}, Out: &out, Err: &said,
	})
	if said.Len() > 0 {
		err = errors.Join(err, errors.New(said.String()))
	}
	return err
}
