// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// kube-controller-manager creates the pods of Jobs, Deployments and StatefulSets, each with a request, and sends as
// many requests a second as this flag says. JobSet and LeaderWorkerSet leave their pods to these.
const (
	controllerManager  = "kube-controller-manager"
	requestsFlag       = "--kube-api-qps"
	requestsOfKube     = 20
	longUntilAllThere  = 10 * time.Second
	labelOfStaticParts = "component"
)

var kindsOfKube = []string{"Deployment", "Job", "JobSet", "LeaderWorkerSet", "ReplicaSet", "StatefulSet"}

// podsCreatedSlowly names the largest work, or how much of it starts now. Whoever cannot see the command line, as where
// a cloud runs the control plane, learns nothing.
func (o Objects) podsCreatedSlowly() (found []sight) {
	rate, known := o.requestsOfControllerManager()
	if !known || rate <= 0 {
		return nil
	}
	most, name, starting, starters := 0, "", 0, 0
	for i := range o.AppWrappers {
		pods := podsOfKube(&o.AppWrappers[i])
		if pods > most {
			most, name = pods, o.AppWrappers[i].Namespace+"/"+o.AppWrappers[i].Name
		}
		if pods > 0 && starts(&o.AppWrappers[i]) {
			starting, starters = starting+pods, starters+1
		}
	}
	what := "AppWrapper"
	if starting > most {
		what, most, name = "AppWrappers that start", starting, fmt.Sprint(starters)
	}
	takes := time.Duration(float64(most) / rate * float64(time.Second))
	if takes <= longUntilAllThere {
		return nil
	}
	return append(found, of(controllerManager, requestsFlag, fmt.Sprint(rate), what, name, "pods", fmt.Sprint(most),
		"created in", takes.Round(time.Second).String()+" at best"))
}

// starts: it has quota, and some of its pods may still have to be created.
func starts(aw *v1beta2.AppWrapper) bool {
	begun := aw.Status.Phase == v1beta2.AppWrapperResuming || aw.Status.Phase == v1beta2.AppWrapperRunning
	return begun && !meta.IsStatusConditionTrue(aw.Status.Conditions, string(v1beta2.PodsReady))
}

func podsOfKube(aw *v1beta2.AppWrapper) (pods int) {
	if aw.Status.Phase == v1beta2.AppWrapperSucceeded || aw.Status.Phase == v1beta2.AppWrapperFailed {
		return 0
	}
	for _, c := range aw.Status.ComponentStatus {
		if slices.Contains(kindsOfKube, c.Kind) {
			for _, s := range c.PodSets {
				pods += int(s.Count())
			}
		}
	}
	return pods
}

func (o Objects) requestsOfControllerManager() (rate float64, known bool) {
	i := slices.IndexFunc(o.Pods, func(p corev1.Pod) bool {
		return p.Namespace == "kube-system" && p.Labels[labelOfStaticParts] == controllerManager && len(p.Spec.Containers) > 0
	})
	if i < 0 {
		return 0, false
	}
	rate = requestsOfKube
	arguments := slices.Concat(o.Pods[i].Spec.Containers[0].Command, o.Pods[i].Spec.Containers[0].Args)
	for n, argument := range arguments {
		value, is := strings.CutPrefix(argument, requestsFlag+"=")
		if argument == requestsFlag && n+1 < len(arguments) {
			value, is = arguments[n+1], true
		}
		if set, err := strconv.ParseFloat(value, 64); is && err == nil {
			rate = set
		}
	}
	return rate, true
}
