// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// The programs of Runs find a bucket as a folder, which they cannot change, or in variables. Who
// has a wrong key reads what to do in the status of the Run.
func TestRunsReadABucket(t *testing.T) {
	testenv.Test(t, features.New("buckets").Assess("objects are files", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.TrainingPods, needs.Buckets, needs.Runs)
		server := s3Server("s3", "admin", "correct")
		s.create(ctx, server)
		s.untilReady(ctx, server)
		endpoint := "http://s3." + s.namespace + ".svc:7070"
		for dataSet, key := range map[string]string{"digits-2026": "correct", "locked": "wrong"} {
			s.create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: dataSet}, StringData: map[string]string{"accessKeyID": "admin", "secretAccessKey": key},
			})
			s.create(ctx, &v1alpha1.DataSet{
				ObjectMeta: metav1.ObjectMeta{Name: dataSet},
				Spec:       v1alpha1.DataSetSpec{S3: &v1alpha1.S3Source{Endpoint: endpoint, Bucket: "pictures", Prefix: "train", SecretName: dataSet}},
			})
		}

		var runs []*v1alpha1.Run
		for _, reader := range []struct {
			name, command string
			input         v1alpha1.Input
		}{
			{"folder", `cd /mnt/datasets/digits-2026 && test "$(cat seven/1) $(ls -R | grep -c 1$)" = "seventh 1" && ! touch a`, v1alpha1.Input{Name: "digits-2026"}},
			{
				"variables", `test "$digits_2026_endpoint $digits_2026_bucket/$digits_2026_prefix $digits_2026_accessKeyID:$digits_2026_secretAccessKey" = "` +
					endpoint + ` pictures/train admin:correct"`, v1alpha1.Input{Name: "digits-2026", UseAs: v1alpha1.UseAsConfigMap},
			},
			{"denied", "true", v1alpha1.Input{Name: "locked"}},
		} {
			app := s.program(reader.name, reader.command)
			app.Spec.Inputs = []v1alpha1.Input{reader.input}
			s.create(ctx, app)
			run := execution(reader.name, reader.name, "100m")
			run.Annotations = map[string]string{workload.RetryLimitAnnotation: "0"}
			s.create(ctx, run)
			runs = append(runs, run)
		}
		s.untilRun(ctx, runs[0], v1alpha1.RunSucceeded)
		s.untilRun(ctx, runs[1], v1alpha1.RunSucceeded)
		s.untilRun(ctx, runs[2], v1alpha1.RunFailed)
		want := endpoint + " refuses the secret access key: correct secretAccessKey in the Secret of the DataSet"
		if f := runs[2].Status.LastFailure; f == nil || f.Container != "copy-0" || f.Message != want {
			t.Errorf("its last failure is %+v", f)
		}
		return ctx
	}).Feature())
}

// s3Server has the bucket pictures, with two objects.
func s3Server(name, accessKeyID, secretAccessKey string) *workload.AppWrapper {
	labels := map[string]string{"app": name}
	buckets := []corev1.VolumeMount{{Name: "buckets", MountPath: "/buckets"}}
	files := container("files", requests("100m", "128Mi", ""))
	files.Image, files.VolumeMounts = here.Training.Name, buckets
	files.Command = []string{"sh", "-c", "cd /buckets && mkdir -p pictures/train/seven pictures/test && echo seventh >pictures/train/seven/1 && echo no >pictures/test/1"}
	server := container("server", requests("100m", "128Mi", ""), "posix", "/buckets")
	server.Image, server.VolumeMounts = here.S3.Name, buckets
	server.Env = []corev1.EnvVar{{Name: "ROOT_ACCESS_KEY", Value: accessKeyID}, {Name: "ROOT_SECRET_KEY", Value: secretAccessKey}}
	server.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7070)}}}
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{files},
			Containers:     []corev1.Container{server},
			Volumes:        []corev1.Volume{{Name: "buckets", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	aw := wrapped(name, &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 7070}}},
	}, nil)
	aw.Spec.Components = append(aw.Spec.Components, wrapped(name, &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{Template: pods},
	}, nil).Spec.Components...)
	return aw
}
