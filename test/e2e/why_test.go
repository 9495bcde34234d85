// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/recording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
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

// mistakes are those that why has to name so, and that only a real node shows. The others are in test/scenes.
var mistakes = map[explain.Code]mistake{
	"RegistryUnreachable": inMain(func(c *corev1.Container) { c.Image, c.ImagePullPolicy = "127.0.0.1:1/nothing:1", corev1.PullAlways }),
	"ImageNeverPulled":    inMain(func(c *corev1.Container) { c.Image, c.ImagePullPolicy = "127.0.0.1:1/nothing:1", corev1.PullNever }),
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
	"ContainerNotCreated": inMain(func(c *corev1.Container) {
		c.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(true)}
	}),
	"OutOfMemory": inMain(func(c *corev1.Container) { c.Args = []string{"hold", "64"} }),
	"HookFailed": inMain(func(c *corev1.Container) {
		c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: execAction("/workload", "exit", "1")}}
	}),
	"ProbeFailed": inMain(func(c *corev1.Container) {
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: execAction("/workload", "exit", "1")}, PeriodSeconds: 1}
	}),
	"NoProgress": {
		inPod: func(p *corev1.PodSpec) {
			p.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: execAction("/workload", "exit", "1")}, PeriodSeconds: 1}
		},
		inWrapper: func(aw *workload.AppWrapper) { aw.Annotations[workload.NoProgressGracePeriodDurationAnnotation] = "2s" },
	},
	"TerminalExitCode": {
		inPod:     func(p *corev1.PodSpec) { p.Containers[0].Args = []string{"exit", "3"} },
		inWrapper: func(aw *workload.AppWrapper) { aw.Annotations[workload.TerminalExitCodesAnnotation] = "3" },
	},
	"DeadlineExceeded": {inPod: func(p *corev1.PodSpec) { p.ActiveDeadlineSeconds = new(int64(1)) }},
}

func execAction(command ...string) *corev1.ExecAction { return &corev1.ExecAction{Command: command} }

// Scenes of mlbatch why, made anew: what real components say is understood. With -scenes.folder they are recorded.
func TestWhyNamesWhatIsWrong(t *testing.T) {
	testenv.Test(t, features.New("why").Assess("each mistake is named", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-failing", "frank", needs.Pods)
		names := map[explain.Code]string{}
		for code, made := range mistakes {
			names[code] = strings.ToLower(string(code))
			s.create(ctx, mistaken(made, names[code]))
		}
		s.untilWhyNames(ctx, cfg, names)
		return ctx
	}).Feature())
}

// untilWhyNames waits until mlbatch why names what is wrong with each of some work.
func (s *story) untilWhyNames(ctx context.Context, cfg *envconf.Config, names map[explain.Code]string) {
	s.t.Helper()
	scheme, err := runs.Scheme()
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := client.New(cfg.Client().RESTConfig(), client.Options{Scheme: scheme, Mapper: why.Mapper()})
	if err != nil {
		s.t.Fatal(err)
	}
	stage := recording.Stage{Client: c, On: "a real cluster"}
	s.until(ctx, "mlbatch why names what is wrong", func(ctx context.Context) (missing string, _ error) {
		for code, name := range names {
			if err := stage.Names(ctx, code, why.Target{Namespace: s.namespace, Name: name}, later); err != nil {
				missing += err.Error() + "\n"
				continue
			}
			delete(names, code)
		}
		return missing, nil
	})
}

// mistaken is a job with a mistake. Its failed pods are kept, and it is not tried again.
func mistaken(made mistake, name string) *workload.AppWrapper {
	inner := job(name, "40m", "sleep", "1h")
	if made.inPod != nil {
		made.inPod(&inner.Spec.Template.Spec)
	}
	aw := wrapped(name, inner, map[string]string{workload.RetryLimitAnnotation: "0", workload.DeletionOnFailureGracePeriodAnnotation: "1h"})
	if made.inWrapper != nil {
		made.inWrapper(aw)
	}
	return aw
}
