// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

func TestAComponentThatNeverEndsBesideOneThatDoesIsAWarningOnCreate(t *testing.T) {
	const (
		scaled  = "spec: {replicas: 2, template: {spec: {containers: [{name: c, image: i}]}}}}"
		idle    = "spec: {replicas: 0, template: {spec: {containers: [{name: c, image: i}]}}}}"
		ray     = "headGroupSpec: {template: {spec: {containers: [{name: c, image: i}]}}}"
		never   = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"
		always  = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"
		unknown = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {}}"
	)
	apps := func(kind, spec string) string {
		return "{apiVersion: apps/v1, kind: " + kind + ", metadata: {name: d}, " + spec
	}
	for sentence, tc := range map[string]struct {
		components []string
		want       string // the kind of the second component, and what to do
	}{
		"a Deployment":                 {[]string{job, apps("Deployment", scaled)}, "Deployment, such as a Job"},
		"a StatefulSet":                {[]string{job, apps("StatefulSet", scaled)}, "StatefulSet, such as a Job"},
		"a ReplicaSet":                 {[]string{job, apps("ReplicaSet", scaled)}, "ReplicaSet, such as a Job"},
		"a LeaderWorkerSet":            {[]string{job, "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: l}, spec: {leaderWorkerTemplate: {workerTemplate: {spec: {}}}}}"}, "LeaderWorkerSet, such as a Job"},
		"a RayCluster":                 {[]string{job, "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {" + ray + "}}"}, "RayCluster, such as a Job"},
		"a RayService":                 {[]string{job, "{apiVersion: ray.io/v1, kind: RayService, metadata: {name: r}, spec: {rayClusterConfig: {" + ray + "}}}"}, "RayService, such as a Job"},
		"a pod that is restarted":      {[]string{never, always}, "Pod, restartPolicy to Never"},
		"pods that end":                {[]string{never, never}, ""},
		"a Deployment of no pods":      {[]string{job, apps("Deployment", idle)}, ""},
		"a Deployment with its like":   {[]string{apps("StatefulSet", scaled), apps("Deployment", scaled)}, ""},
		"a Deployment with a Service":  {[]string{service, apps("Deployment", scaled)}, ""},
		"a Deployment with an unknown": {[]string{unknown, apps("Deployment", scaled)}, ""},
		"a Job with a Service":         {[]string{job, service}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := WarningsOnCreate(appWrapper(t, component(tc.components[0]), component(tc.components[1])))
			if tc.want == "" {
				if len(got) > 0 {
					t.Errorf("got %q", got)
				}
				return
			}
			kind, instead, _ := strings.Cut(tc.want, ", ")
			if len(got) != 1 || !strings.HasPrefix(got[0], "spec.components[1].template is a "+kind+" that runs until it is deleted: ") || !strings.HasSuffix(got[0], instead) {
				t.Errorf("got %q", got)
			}
		})
	}
}
