// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

// A finalizer keeps an object, and what it holds, as long as its author likes.
func TestMembersAddNoFinalizers(t *testing.T) {
	lifecycle := onePolicy(t, "lifecycle")
	of := func(version, kind, finalizers, owner string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: w, finalizers: %s, ownerReferences: [%s]}, spec: {}}", version, kind, finalizers, owner)
	}
	const aw, ofAppWrapper, ofCertificate = "workload.codeflare.dev/v1beta2", "{kind: AppWrapper, name: o, controller: true}", "{kind: Certificate, name: o, controller: true}"
	const blocking = "{kind: AppWrapper, name: o, blockOwnerDeletion: true}"
	const adds, removes = "only controllers may add a finalizer to work", "only controllers may remove the finalizer"
	const platforms = "[workload.codeflare.dev/finalizer]"
	many := `{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"w","finalizers":["a"` + strings.Repeat(`,"a"`, 300_000) + `]},"spec":{}}`
	for name, c := range map[string]struct{ object, old, want string }{
		"a PyTorchJob":                                  {of("kubeflow.org/v1", "PyTorchJob", "[example.com/keep]", ""), "", "remove example.com/keep from metadata.finalizers"},
		"a PyTorchJob later":                            {of("kubeflow.org/v1", "PyTorchJob", "[example.com/keep]", ""), of("kubeflow.org/v1", "PyTorchJob", "[]", ""), adds},
		"a PyTorchJob with an empty one":                {of("kubeflow.org/v1", "PyTorchJob", "['']", ""), "", adds},
		"a PyTorchJob with as many as fit":              {many, "", "more than 20 finalizers"},
		"a PyTorchJob with none":                        {of("kubeflow.org/v1", "PyTorchJob", "[]", ""), "", ""},
		"a PyTorchJob with null":                        {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: w}, spec: {}}`, "", ""},
		"a RayCluster":                                  {of("ray.io/v1", "RayCluster", "[example.com/keep]", ""), "", adds},
		"an AppWrapper":                                 {of(aw, "AppWrapper", "[example.com/keep]", ""), "", adds},
		"an AppWrapper for its garbage":                 {of(aw, "AppWrapper", "[foregroundDeletion]", ""), of(aw, "AppWrapper", "[]", ""), adds},
		"a Run":                                         {of("codeflare.dev/v1alpha1", "Run", "[example.com/keep]", ""), "", adds},
		"a Job that an editor creates":                  {of("batch/v1", "Job", "[example.com/keep]", ""), "", adds},
		"a wrapped Deployment":                          {of("apps/v1", "Deployment", "[a]", ofAppWrapper), of("apps/v1", "Deployment", "[]", ofAppWrapper), adds},
		"a wrapped ConfigMap":                           {of("v1", "ConfigMap", "[a]", ofAppWrapper), of("v1", "ConfigMap", "[]", ofAppWrapper), adds},
		"a pod of work":                                 {of("v1", "Pod", "[a]", "{kind: Job, name: o, controller: true}"), of("v1", "Pod", "[]", "{kind: Job, name: o, controller: true}"), adds},
		"an AppWrapper that starts":                     {of(aw, "AppWrapper", platforms, ""), of(aw, "AppWrapper", "[]", ""), ""},
		"an AppWrapper that is a hook of Argo CD":       {of(aw, "AppWrapper", "[argocd.argoproj.io/hook-finalizer]", ""), "", ""},
		"a PyTorchJob that poses as a hook":             {of("kubeflow.org/v1", "PyTorchJob", "[argocd.argoproj.io/hook-finalizer]", ""), "", adds},
		"a ConfigMap of nobody's":                       {of("v1", "ConfigMap", "[a]", ""), of("v1", "ConfigMap", "[]", ""), ""},
		"a Secret of a certificate":                     {of("v1", "Secret", "[a]", ofCertificate), of("v1", "Secret", "[]", ofCertificate), ""},
		"a Deployment of nobody's":                      {of("apps/v1", "Deployment", "[a]", ""), "", ""},
		"a ConfigMap for which its owner would wait":    {of("v1", "ConfigMap", "[a]", blocking), "", adds},
		"a Secret for which it waits later":             {of("v1", "Secret", "[a]", blocking), of("v1", "Secret", "[a]", ""), adds},
		"a ConfigMap that poses as wrapped":             {of("v1", "ConfigMap", "[a]", ofAppWrapper), "", adds},
		"a ConfigMap for which a Workload would wait":   {of("v1", "ConfigMap", "[a]", "{kind: Workload, name: o, blockOwnerDeletion: true}"), "", adds},
		"a claim for which it waits":                    {of("v1", "PersistentVolumeClaim", "[kubernetes.io/pvc-protection]", blocking), "", ""},
		"a ConfigMap that its owner takes along":        {of("v1", "ConfigMap", "[a]", "{kind: AppWrapper, name: o}"), "", ""},
		"an AppWrapper that loses ours":                 {of(aw, "AppWrapper", "[]", ""), of(aw, "AppWrapper", platforms, ""), removes},
		"a RayJob that loses KubeRay's":                 {of("ray.io/v1", "RayJob", "[]", ""), of("ray.io/v1", "RayJob", "[ray.io/rayjob-finalizer]", ""), removes},
		"work that an administrator deletes":            {of(aw, "AppWrapper", "[]", ""), of(aw, "AppWrapper", "[foregroundDeletion]", ""), removes},
		"a wrapped Job that loses any":                  {of("batch/v1", "Job", "[]", ofAppWrapper), of("batch/v1", "Job", "[a]", ofAppWrapper), removes},
		"an AppWrapper that loses one's own, of before": {of(aw, "AppWrapper", "[]", ""), of(aw, "AppWrapper", "[example.com/keep]", ""), ""},
		"an AppWrapper that keeps it":                   {of(aw, "AppWrapper", "[example.com/keep]", ""), of(aw, "AppWrapper", "[example.com/keep]", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := request{operation: admission.Create, object: c.object, old: c.old}
			if c.old != "" {
				r.operation = admission.Update
			}
			got := judge(t, lifecycle, r, false)
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("want %q, got %q", c.want, got)
			}
			if got := judge(t, lifecycle, r, true); len(got) > 0 {
				t.Errorf("a controller is refused: %q", got)
			}
		})
	}
}

// Quota is held as long as there are pods, if an object is deleted before what it owns, and with it.
func TestMembersDeleteInTheBackground(t *testing.T) {
	lifecycle := onePolicy(t, "lifecycle")
	kinds := map[string]string{
		"AppWrapper": "workload.codeflare.dev/v1beta2", "Run": "codeflare.dev/v1alpha1", "PyTorchJob": "kubeflow.org/v1", "MPIJob": "kubeflow.org/v2beta1", "RayCluster": "ray.io/v1",
		"RayService": "ray.io/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1", "Deployment": "apps/v1", "Job": "batch/v1", "ReplicationController": "v1",
	}
	for kind, version := range kinds {
		leaves := kind == "Job" || kind == "ReplicationController" // without options
		for options, may := range map[string]bool{
			"propagationPolicy: Background": true, "propagationPolicy: Foreground": false, "propagationPolicy: Orphan": false, "propagationPolicy: ''": false,
			"orphanDependents: true": false, "orphanDependents: false": true, "gracePeriodSeconds: 0": !leaves,
		} {
			r := request{operation: admission.Delete, old: workWith(version, kind, "a: b"), options: options}
			got := judge(t, lifecycle, r, false)
			if may != (len(got) == 0) || !may && !strings.Contains(got[0], "with --cascade=background") {
				t.Errorf("%s with %s: got %q", kind, options, got)
			}
			if got := judge(t, lifecycle, r, true); len(got) > 0 {
				t.Errorf("%s with %s: a controller is refused: %q", kind, options, got)
			}
		}
	}
}

// Operators replace at once what is evicted. Programs that drain nodes give no options: a pod has the time that it asks
// for then.
func TestEvictedPodsHaveLittleTime(t *testing.T) {
	lifecycle := onePolicy(t, "lifecycle")
	for options, may := range map[string]bool{"gracePeriodSeconds: 31": false, "gracePeriodSeconds: 30": true, "": true} {
		r := request{operation: admission.Create, subresource: "eviction", resource: "pods/eviction", object: "{apiVersion: policy/v1, kind: Eviction, metadata: {name: p}, deleteOptions: {" + options + "}}"}
		if got := judge(t, lifecycle, r, false); (len(got) == 0) != may {
			t.Errorf("%q: got %q", options, got)
		}
		if got := judge(t, lifecycle, r, true); len(got) > 0 {
			t.Errorf("%q: a controller is refused: %q", options, got)
		}
	}
}

// With a second owner, the garbage collector would keep what work leaves behind.
func TestWhatIsOwnedGetsNoOtherOwner(t *testing.T) {
	ownership := onePolicy(t, "ownership")
	of := func(owners string) string {
		return `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r, ownerReferences: [` + owners + `]}, spec: {}}`
	}
	const service, other = "{kind: RayService, name: s, controller: true}", "{kind: ConfigMap, name: c}"
	for name, c := range map[string]struct {
		object, old string
		refused     bool
	}{
		"a second owner":      {of(service + ", " + other), of(service), true},
		"one less":            {of(service), of(service + ", " + other), true},
		"the same":            {of(service), of(service), false},
		"an owner of free":    {of(other), of(""), true},
		"no owners any more":  {of(""), of(service), true},
		"a member's own work": {of(""), of(""), false},
	} {
		got := judge(t, ownership, request{operation: admission.Update, object: c.object, old: c.old}, false)
		if c.refused != (len(got) == 1) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
