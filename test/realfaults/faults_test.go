// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
	"github.com/mlbatch/mlbatch/test/sandbox"
)

// ofPrograms can be injected at the same moment. The second attempt of each is on the real node again.
var ofPrograms = []fault{
	{sentence: "an exit code that is final", work: ends, order: "exit 13",
		ended: "Error 13", cause: "FailedComponent", fails: true, loses: ledger.LostToFailure},
	{sentence: "an exit code that is not final", work: ends, order: "exit 12",
		ended: "Error 12", cause: "FailedComponent", retries: 1, loses: ledger.LostToFailure},
	{sentence: "the kernel kills a program that takes too much memory", order: "exec tail /dev/zero",
		ended: "OOMKilled 137", cause: "FailedComponent", retries: 1, loses: ledger.LostToFailure},
	{sentence: "a program fills its disk", work: work{edit: littleDisk}, order: "head -c 64M /dev/zero >/tmp/full",
		ended: "Evicted", cause: "FailedComponent", retries: 1, loses: ledger.LostToFailure},
	{sentence: "one of two ranks makes no step any more", work: work{trains: true, pods: 2}, order: "rm /tmp/steps",
		cause: workload.ReasonNoProgress, retries: 1, loses: ledger.LostToHang},
	{sentence: "a start that is deadlocked", work: deadlocks, early: true, cause: workload.ReasonNoProgress, retries: 1, loses: ledger.LostToHang, help: start},
	{sentence: "an image that never comes", work: lacksImage, early: true, cause: workload.ReasonInsufficientPodsReady, retries: 1, help: bringImage},
}

// grace is longer than a real pod needs to start on a busy machine.
const grace = "20s"

// ends is a program of which one exit code is final.
var ends = work{annotations: map[string]string{workload.TerminalExitCodesAnnotation: "13"}}

// deadlocks are two pods that are not ready until somebody helps.
var deadlocks = work{pods: 2, annotations: map[string]string{workload.NoProgressGracePeriodDurationAnnotation: grace}, edit: func(spec *corev1.PodSpec) {
	spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/tmp/started"}}},
	}
}}

// start lets all pods of the next attempt start.
func start(w *work) {
	w.Helper()
	w.Await(w.name+" has started", func() error {
		for _, pod := range w.itsPods() {
			if err := w.sh(pod, "touch /tmp/started", ""); err != nil {
				return err
			}
		}
		if _, ok := w.lives.first(w.name, time.Time{}, running); !ok {
			return errors.New(w.lives.latest(w.name))
		}
		return nil
	})
}

// late is an image that no registry has.
const late = "images.local/realfaults/late:1"

var lacksImage = work{annotations: map[string]string{workload.WarmupGracePeriodDurationAnnotation: grace}, edit: func(spec *corev1.PodSpec) {
	spec.Containers[0].Image, spec.Containers[0].ImagePullPolicy = late, corev1.PullIfNotPresent
}}

func bringImage(w *work) { sandbox.TagImage(w.T, w.cluster, image, late) }

func littleDisk(spec *corev1.PodSpec) {
	spec.Containers[0].Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("8Mi")
}
