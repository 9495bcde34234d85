// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// serving is a cluster that serves these kinds.
type serving struct {
	client.WithWatch
	kinds meta.RESTMapper
}

// RESTMapper knows them.
func (s serving) RESTMapper() meta.RESTMapper { return s.kinds }

// withJobSets is a cluster whose queue has quota for GPUs of another maker.
func withJobSets(t *testing.T, more ...schema.GroupVersionKind) client.Client {
	t.Helper()
	scheme, err := runs.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	served := meta.NewDefaultRESTMapper(nil)
	for _, kind := range append(more, schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}) {
		served.Add(kind, meta.RESTScopeNamespace)
	}
	c := cluster(t, interceptor.Funcs{})
	queue := &kueue.ClusterQueue{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(clusterQueue()), queue); err != nil {
		t.Fatal(err)
	}
	group := &queue.Spec.ResourceGroups[0]
	group.CoveredResources = append(group.CoveredResources, "amd.com/gpu")
	group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.ResourceQuota{Name: "amd.com/gpu", NominalQuota: resource.MustParse("2")})
	if err := c.Update(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return serving{c, meta.MultiRESTMapper{served, kinds(scheme)}}
}

// A platform may have other settings than the default ones. Where its Runs have no PodGroups, the cluster does
// not serve them; and the user says which resource its sizes mean by gpu.
func TestARunIsCheckedAsThePlatformPlansIt(t *testing.T) {
	podGroups := schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}
	torch := strings.NewReplacer("api: shell", "api: torch", "command: date", "command: a.py, supportsGpu: true, torch: {backend: JobSet}").Replace(app)
	for name, row := range map[string]struct {
		serves     []schema.GroupVersionKind
		gpus       string
		components int
		says       string
	}{
		"with PodGroups":    {serves: []schema.GroupVersionKind{podGroups}, gpus: "amd.com/gpu", components: 2},
		"without PodGroups": {gpus: "amd.com/gpu", components: 1},
		"GPUs of no quota":  {says: "the job requests 2 of nvidia.com/gpu, but ClusterQueue blue-queue has no quota for it"},
	} {
		t.Run(name, func(t *testing.T) {
			m := read(t, torch, strings.Replace(run, "}}}", "}, supportsGpu: true}}", 1))
			m.GPUResourceName = row.gpus
			m, err := m.In("blue")
			if err != nil {
				t.Fatal(err)
			}
			plans, _, err := m.Check(t.Context(), withJobSets(t, row.serves...))
			if row.says != "" {
				wording.Wanted(t, err, row.says)
				return
			}
			if err != nil || len(plans) != 1 || len(plans[0].AppWrapper.Spec.Components) != row.components {
				t.Fatalf("got %+v, and %v", plans, err)
			}
			if main := plans[0].AppWrapper.Spec.Components[row.components-1]; !slices.Contains(strings.Split(string(main.Template.Raw), `"`), row.gpus) {
				t.Errorf("no %s is in %s", row.gpus, main.Template.Raw)
			}
		})
	}
}
