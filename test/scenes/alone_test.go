// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"context"
	"errors"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
)

// alone are scenes that disturb all others, so they are the last ones, in this order.
var alone = []struct {
	code explain.Code
	scene
}{
	{"NodeTaintAppeared", scene{set: func(p *place) {
		p.queue()
		p.runs("train", unwilling, onlyIn("tainted"))
		all := client.MatchingLabels{pool: "tainted"}
		p.eachNode(all, `{"spec": {"taints": [{"key": "example.com/broken", "effect": "NoExecute"}]}}`, `{"spec": {"taints": null}}`)
	}}},
	{"KindNotServed", scene{set: func(p *place) {
		p.queue(stopped)
		p.submit("train", instead(rayCluster()))
		p.remove(&metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}, ObjectMeta: metav1.ObjectMeta{Name: "rayclusters.ray.io"},
		})
		p.open()
	}}},
	{"NodesCordoned", scene{set: func(p *place) {
		p.eachNode(nil, `{"spec": {"unschedulable": true}}`, `{"spec": {"unschedulable": null}}`)
		p.queue()
		p.submit("train")
	}}},
	{"NodesTainted", scene{set: func(p *place) {
		all := client.MatchingLabels{sandbox.Simulated: "true"} // the platform's has a taint already
		p.eachNode(all, `{"spec": {"taints": [{"key": "example.com/maintenance", "effect": "NoSchedule"}]}}`, `{"spec": {"taints": null}}`)
		p.queue()
		p.submit("train")
	}}},
	{"ControllerSilent", scene{later: later, set: func(p *place) {
		p.queue()
		p.depose()
		p.submit("train")
	}}},
}

// eachNode changes nodes until the scene has ended.
func (p *place) eachNode(which client.MatchingLabels, do, undo string) {
	p.Helper()
	all := &corev1.NodeList{}
	if err := p.admin.List(p.Context(), all, which); err != nil {
		p.Fatal(err)
	}
	change := func(ctx context.Context, text string) {
		for i := range all.Items {
			if err := p.admin.Patch(ctx, &all.Items[i], client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
				p.Errorf("cannot change a node: %v", err)
			}
		}
	}
	p.Cleanup(func() { change(context.Background(), undo) })
	change(p.Context(), do)
}

// controller is the name of the controller of AppWrappers, and of its Lease.
const (
	controller = "appwrapper-controller-manager"
	leaseName  = "f134c674.codeflare.dev"
)

// depose lets the controller of AppWrappers serve its webhooks, and lead no more: somebody else does, who does nothing.
func (p *place) depose() {
	p.Helper()
	before := p.restarts()
	p.patch(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: leaseName}},
		`{"spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 3600, "renewTime": %q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	p.until(func() error {
		if p.restarts() == before {
			return errors.New("the controller leads")
		}
		return nil
	})
	p.until(func() error {
		probe := &workload.AppWrapper{ObjectMeta: p.named("probe")}
		probe.Spec.Components = []workload.AppWrapperComponent{{Template: runtime.RawExtension{Object: newJob("probe")}}}
		return p.admin.Create(p.Context(), probe, client.DryRunAll)
	})
}

// restarts is how often the controller was started again.
func (p *place) restarts() (n int32) {
	p.Helper()
	all := &corev1.PodList{}
	if err := p.admin.List(p.Context(), all, client.InNamespace(platform.Namespace)); err != nil {
		p.Fatal(err)
	}
	for _, pod := range all.Items {
		for _, s := range pod.Status.ContainerStatuses {
			if strings.HasPrefix(pod.Name, controller) {
				n += s.RestartCount
			}
		}
	}
	return n
}
