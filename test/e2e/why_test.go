// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// later is how much time passes for why, which then need not wait until somebody has been silent for long.
const later = 5 * time.Minute

// mistake is what is wrong with a job or its AppWrapper.
type mistake struct {
	inPod     func(*corev1.PodSpec)
	inWrapper func(*workload.AppWrapper)
}

func inMain(change func(*corev1.Container)) mistake {
	return mistake{inPod: func(p *corev1.PodSpec) { change(&p.Containers[0]) }}
}

func ending(code string) mistake {
	return inMain(func(c *corev1.Container) { c.Args = []string{"exit", code} })
}

func beginning(args ...string) mistake {
	return mistake{inPod: func(p *corev1.PodSpec) {
		p.InitContainers = []corev1.Container{container("init", requests("50m", "16Mi", ""), args...)}
	}}
}

func labelled(key string) mistake {
	return mistake{inWrapper: func(aw *workload.AppWrapper) { aw.Labels[key] = "nobody" }}
}

// mistakes are those that why has to name so.
var mistakes = map[explain.Code]mistake{
	"RegistryUnreachable": inMain(func(c *corev1.Container) { c.Image, c.ImagePullPolicy = "127.0.0.1:1/nothing:1", corev1.PullAlways }),
	"ImageNeverPulled":    inMain(func(c *corev1.Container) { c.Image, c.ImagePullPolicy = "127.0.0.1:1/nothing:1", corev1.PullNever }),
	"ImageNameInvalid":    inMain(func(c *corev1.Container) { c.Image = "Not-An-Image" }),
	"ConfigMissing": inMain(func(c *corev1.Container) {
		from := &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "nothing"}}
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: from}}
	}),
	"CommandMissing": inMain(func(c *corev1.Container) { c.Command = []string{"/nothing"} }),
	"ProgramFailed":  ending("3"),
	"ProgramKilled":  ending("137"),
	"ProgramCrashed": ending("139"),
	"InitFailed":     beginning("exit", "3"),
	"InitRuns":       beginning("sleep", "1h"),
	"VolumeClaimMissing": {inPod: func(p *corev1.PodSpec) {
		claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "nothing"}
		p.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}}
	}},
	"DeadlineExceeded":  {inPod: func(p *corev1.PodSpec) { p.ActiveDeadlineSeconds = new(int64(1)) }},
	"SchedulerSilent":   {inPod: func(p *corev1.PodSpec) { p.SchedulerName = "nobody" }},
	"UnknownPriority":   labelled("kueue.x-k8s.io/priority-class"),
	"LocalQueueMissing": labelled(workload.QueueNameLabel),
}

// Scenes of mlbatch why, made anew: what real components say is understood.
func TestWhyNamesWhatIsWrong(t *testing.T) {
	testenv.Test(t, features.New("why").Assess("each mistake is named", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-failing", "frank", needs.Pods)
		scheme, err := runs.Scheme()
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(cfg.Client().RESTConfig(), client.Options{Scheme: scheme, Mapper: why.Mapper()})
		if err != nil {
			t.Fatal(err)
		}
		names := map[explain.Code]string{}
		for code, made := range mistakes {
			names[code] = fmt.Sprintf("mistake-%d", len(names))
			s.create(ctx, mistaken(made, names[code]))
		}
		for code, name := range names {
			s.until(ctx, fmt.Sprintf("%s is the cause of %s", code, name), func(ctx context.Context) (string, error) {
				e, err := why.Explain(ctx, c, why.Target{Namespace: s.namespace, Name: name}, time.Now().Add(later))
				if err != nil || slices.ContainsFunc(e.Causes, func(c explain.Cause) bool { return c.Code == code }) {
					return "", err
				}
				return explain.Text(e, time.Now()), nil
			})
		}
		return ctx
	}).Feature())
}

// mistaken is a job with a mistake. Its failed pods are kept, and it is not tried again.
func mistaken(made mistake, name string) *workload.AppWrapper {
	inner := job(name, "50m", "sleep", "1h")
	if made.inPod != nil {
		made.inPod(&inner.Spec.Template.Spec)
	}
	aw := wrapped(name, inner, map[string]string{workload.RetryLimitAnnotation: "0", workload.DeletionOnFailureGracePeriodAnnotation: "10m"})
	if made.inWrapper != nil {
		made.inWrapper(aw)
	}
	return aw
}
