// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// refusedDeployment is a busy namespace in which train0 wraps a Deployment, whose ReplicaSet may make no pods. The
// ReplicaSet belongs to a Deployment of some name.
func refusedDeployment(owner string) map[string]string {
	world := busyNamespace()
	world[wrappers+"/train0"] = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"train0","namespace":"blue","uid":"uid-0"},"status":{"phase":"Running",
		"componentStatus":[{"name":"serve","kind":"Deployment","podSets":[{"path":"template"}],"conditions":[]}],
		"conditions":[{"type":"PodsReady","status":"False","reason":"InsufficientPodsReady","message":"1 pods missing","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	var events []string
	for i := range 9 {
		events = append(events, fmt.Sprintf(`{"metadata":{"name":"e%d"},"type":"Warning","reason":"FailedCreate","involvedObject":{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"serve-%d","uid":"uid-serve-%d"},
			"message":"Error creating: pods \"serve\" is forbidden: exceeded quota: gpus, requested: pods=1"}`, i, i, i))
	}
	world["/api/v1/namespaces/blue/events"] = list("v1", "Event", events...)
	world["/apis/apps/v1/namespaces/blue/replicasets/serve-8"] = fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"serve-8","namespace":"blue","uid":"uid-serve-8",
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":%q,"uid":"u"}]}}`, owner)
	return world
}

func TestWhyFollowsOwnersDown(t *testing.T) {
	refused := "ResourceQuotaExceeded: a ResourceQuota of the namespace is used up.\n  evidence: ReplicaSet serve-8, event FailedCreate: "
	for owner, found := range map[string]bool{"serve": true, "serve-of-others": false} {
		out, progress, requests, err := ask(t, refusedDeployment(owner), "why train0")
		if err != nil || progress != "" || strings.Contains(out, refused) != found {
			t.Errorf("with a ReplicaSet of Deployment %s: got %q, %q, %v", owner, out, progress, err)
		}
		if len(requests) > 15 {
			t.Errorf("%d requests: %q", len(requests), requests)
		}
	}
	out, _, _, err := ask(t, refusedDeployment("serve"), "why train0", "/apis/apps")
	if err != nil || !strings.Contains(out, "unknown: you may not read ReplicaSet serve-8, which has a warning\n") {
		t.Errorf("got %q, %v", out, err)
	}
}

// workflow is a busy namespace with a Run of which six steps wait for quota, and one runs.
func workflow() map[string]string {
	world, steps := busyNamespace(), []string{`{"name":"first","application":{"name":"a"},"phase":"Succeeded","appWrapper":{"name":"gone","uid":"gone"}}`}
	for i := range 6 {
		steps = append(steps, fmt.Sprintf(`{"name":"s%d","application":{"name":"a"},"phase":"Queued","appWrapper":{"name":"train%d","uid":"uid-%d"}}`, i, i, i))
	}
	world[runsOfBlue+"/flow"] = fmt.Sprintf(`{"apiVersion":"codeflare.dev/v1alpha1","kind":"Run","metadata":{"name":"flow","namespace":"blue"},
		"status":{"phase":"Queued","message":"1 of 7 steps have ended","steps":[%s]}}`, strings.Join(steps, ","))
	return world
}

func TestWhyAnswersForTheStepsOfAWorkflow(t *testing.T) {
	out, progress, requests, err := ask(t, workflow(), "why flow")
	if err != nil || progress != "" || len(requests) > 40 {
		t.Errorf("got %q, %v after %q", progress, err, requests)
	}
	for _, want := range []string{
		"Run flow in namespace blue is Queued: 1 of 7 steps have ended.\n", "\nStep s0: QuotaLent: ", "\nStep s3: QuotaLent: ",
		"unknown: more than 4 steps are at work: ask about AppWrapper train4, train5, too\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
	if strings.Count(strings.Join(requests, "\n"), "/clusterqueues") != 1 {
		t.Errorf("the queue of all steps is read again: %q", requests)
	}
}

// The pod with which KubeRay submits a RayJob has no label of the AppWrapper.
func TestWhyFindsThePodThatSubmitsARayJob(t *testing.T) {
	world := busyNamespace()
	world[wrappers+"/train0"] = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"train0","namespace":"blue","uid":"uid-0"},"status":{"phase":"Running",
		"componentStatus":[{"name":"tune","kind":"RayJob","podSets":[{"path":"template"}],"conditions":[]}],
		"conditions":[{"type":"PodsReady","status":"True","reason":"SufficientPodsReady","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	world["/api/v1/namespaces/blue/pods"] = list("v1", "Pod", `{"metadata":{"name":"tune-x2x4z","labels":{"batch.kubernetes.io/job-name":"tune"}},"status":{"phase":"Pending",
		"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available"}]}}`)
	out, progress, requests, err := ask(t, world, "why train0")
	if err != nil || progress != "" || !strings.Contains(out, "PodNotScheduled: ") || !strings.Contains(out, "  evidence: Pod tune-x2x4z, condition PodScheduled is False") {
		t.Errorf("got %q, %q, %v", out, progress, err)
	}
	if want := "GET /api/v1/namespaces/blue/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3Dtune&limit=500"; !slices.Contains(requests, want) {
		t.Errorf("the requests %q lack %s", requests, want)
	}
}
