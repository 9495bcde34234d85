// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/yaml"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

const (
	ofPod    = `{spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 10m, memory: 16Mi}}}]}}`
	ofWorker = `{spec: {containers: [{name: pytorch, image: x, resources: {requests: {cpu: 10m, memory: 16Mi}}}]}}`
	ofJob    = `{spec: {restartPolicy: Never, containers: [{name: main, image: x, resources: {requests: {cpu: 10m, memory: 16Mi}}}]}}`
	aService = `{apiVersion: v1, kind: Service, metadata: {name: refused}, spec: {ports: [{port: 80}], %s}}`
	aRay     = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: refused, labels: {kueue.x-k8s.io/queue-name: default-queue}}, spec: {headGroupSpec: {rayStartParams: {}, %s template: ` + ofPod + `}}}`
	aTorch   = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: refused}, spec: {%s pytorchReplicaSpecs: {Master: {replicas: 1, template: ` + ofWorker + `}, Worker: {replicas: %d, template: ` + ofWorker + `}}}}`
	aJob     = `{apiVersion: batch/v1, kind: Job, metadata: {name: refused, %s}, spec: {template: ` + ofJob + `}}`
)

// wrapping is an AppWrapper of these templates.
func wrapping(templates ...string) string {
	return `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: refused, labels: {kueue.x-k8s.io/queue-name: default-queue}}, ` +
		`spec: {components: [{template: ` + strings.Join(templates, `}, {template: `) + `}]}}`
}

// refused are objects that a member may not create, and what the API server says. Most were ways
// past the quota once, or could become one.
var refused = map[string]struct{ manifest, says string }{
	"more components than anybody needs":         {wrapping(strings.Split(strings.Repeat(fmt.Sprintf(aJob, "")+"\n", 65), "\n")[:65]...), "64"},
	"a version of a kind that nobody counts":     {wrapping(strings.Replace(fmt.Sprintf(aRay, ""), "ray.io/v1", "ray.io/v1alpha1", 1)), "template.apiVersion"},
	"a finalizer that would keep the quota":      {wrapping(fmt.Sprintf(aJob, ""), `{apiVersion: v1, kind: ConfigMap, metadata: {name: refused, finalizers: [example.com/mine]}}`), "metadata.finalizers"},
	"a template with another queue":              {wrapping(fmt.Sprintf(aJob, "labels: {kueue.x-k8s.io/queue-name: another}")), "metadata.labels"},
	"a template that claims an owner":            {wrapping(fmt.Sprintf(aJob, "ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: x, controller: true}]")), "metadata.ownerReferences"},
	"a PyTorchJob that grows by itself":          {wrapping(fmt.Sprintf(aTorch, "elasticPolicy: {maxReplicas: 9, metrics: []},", 1)), "elasticPolicy"},
	"a role of no pods, which gets one":          {wrapping(fmt.Sprintf(aTorch, "", 0)), "replicas"},
	"a bare PyTorchJob with such a role":         {strings.Replace(fmt.Sprintf(aTorch, "", 0), "name: refused", "name: refused, labels: {kueue.x-k8s.io/queue-name: default-queue}", 1), "replicas"},
	"a Ray cluster that grows by itself":         {wrapping(strings.Replace(fmt.Sprintf(aRay, ""), "spec: {head", "spec: {enableInTreeAutoscaling: true, head", 1)), "enableInTreeAutoscaling"},
	"a wrapped pod on a node that it chooses":    {wrapping(strings.Replace(fmt.Sprintf(aJob, ""), "restartPolicy", "nodeName: x, restartPolicy", 1)), "nodeName"},
	"a wrapped pod that tolerates everything":    {wrapping(strings.Replace(fmt.Sprintf(aJob, ""), "restartPolicy", "tolerations: [{operator: Exists}], restartPolicy", 1)), "tolerations"},
	"a Service of type LoadBalancer":             {fmt.Sprintf(aService, "type: LoadBalancer"), "LoadBalancer"},
	"a Service that takes an address of others":  {fmt.Sprintf(aService, "externalIPs: [192.0.2.1]"), "externalIPs"},
	"a token that never expires":                 {`{apiVersion: v1, kind: Secret, metadata: {name: refused, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}`, "whose token never expires"},
	"a Ray cluster with an Ingress":              {fmt.Sprintf(aRay, "enableIngress: true,"), "enableIngress"},
	"a Lease of the name of the controller's":    {`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: f134c674.codeflare.dev}}`, "cannot create resource"},
	"a Workload of Kueue's":                      {`{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: refused}, spec: {queueName: default-queue, podSets: []}}`, "cannot create resource"},
	"a pod that no queue knows":                  {`{apiVersion: v1, kind: Pod, metadata: {name: refused}, spec: ` + strings.TrimSuffix(strings.TrimPrefix(ofPod, "{spec: "), "}") + `}`, "cannot create resource"},
	"a Run that chooses a class of the system's": {`{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: refused}, spec: {application: {name: x}, priority: system-node-critical}}`, "spec.priority"},
}

func TestAHostileMemberIsRefused(t *testing.T) {
	testenv.Test(t, features.New("refused").Assess("nothing is created", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-hostile", "mallory", needs.EveryKind)
		before := s.world(ctx)
		for name, attack := range refused {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(attack.manifest), &object.Object); err != nil {
				t.Fatalf("%s: %v in %s", name, err, attack.manifest)
			}
			object.SetNamespace(s.namespace)
			err := s.user.Create(ctx, object)
			if err == nil {
				s.created = append(s.created, object)
			}
			refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
			if !refused || !strings.Contains(err.Error(), attack.says) {
				t.Errorf("%s: the API server answers: %v", name, err)
			}
		}
		// While a deletion goes on, the webhook does not look.
		s.admit(ctx, wrapped("going", job("going", "50m", "linger", farewell), nil), 1)
		going := &workload.AppWrapper{}
		going.Name, going.Namespace = "going", s.namespace
		if err := s.user.Delete(ctx, going); err != nil {
			t.Fatal(err)
		}
		for _, patch := range []string{`{"spec":{"components":[]}}`, `{"spec":{"managedBy":"x"}}`, `{"metadata":{"finalizers":null}}`} {
			if err := s.patch(ctx, "workload.codeflare.dev/v1beta2", "AppWrapper", "going", patch); err == nil || !strings.Contains(err.Error(), "mlbatch-lifecycle") {
				t.Errorf("after %s the API server answers: %v", patch, err)
			}
		}
		s.until(ctx, "the world is as before", func(ctx context.Context) (string, error) {
			if after := s.world(ctx); after != before {
				return fmt.Sprintf("it was\n%s\nand is\n%s", before, after), nil
			}
			return "", nil
		})
		return ctx
	}).Feature())
}
