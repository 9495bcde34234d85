// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/feature"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	kueueconfig "sigs.k8s.io/kueue/apis/config/v1beta2"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// platform renders the umbrella with the given values, each a path and a YAML text.
func platform(t *testing.T, in map[string]any) []object {
	t.Helper()
	rendered, err := render(t, "mlbatch", in)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, rendered.Manifest)
}

func TestOneSchedulerNameEverywhere(t *testing.T) {
	want := must(versions())(t).SchedulerName
	all := platform(t, nil)

	var scheduler schedulerconfig.KubeSchedulerConfiguration
	decode(t, find(t, all, "ConfigMap/scheduler-config").Data["scheduler-config.yaml"], &scheduler)
	if len(scheduler.Profiles) != 1 || *scheduler.Profiles[0].SchedulerName != want {
		t.Errorf("the coscheduler's only profile must be %s", want)
	}
	operator := find(t, all, "Deployment/training-operator").containers()[0]
	if flag := "--gang-scheduler-name=" + want; !slices.Contains(operator.Args, flag) {
		t.Errorf("the training operator has no %s but %q", flag, operator.Args)
	}
	var controller struct {
		AppWrapper struct{ SchedulerName string }
	}
	if err := yaml.Unmarshal([]byte(find(t, all, "ConfigMap/appwrapper-operator-config").Data["config.yaml"]), &controller); err != nil {
		t.Fatal(err)
	}
	if got := controller.AppWrapper.SchedulerName; got != want {
		t.Errorf("the controller sends pods to %q, not to %q", got, want)
	}
	// The generator names none, so that the job goes where the platform sends it.
	rendered, err := render(t, "pytorchjob-generator", map[string]any{"jobName": "a", "containerImage": "example.com/a:1"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(rendered.Manifest, "schedulerName") {
		t.Errorf("the generator names a scheduler:\n%s", rendered.Manifest)
	}
}

func TestOneNameOfAccelerators(t *testing.T) {
	all, err := render(t, "mlbatch", map[string]any{"global": map[string]any{"gpuResourceName": "amd.com/gpu"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"ConfigMap/scheduler-config", "ConfigMap/appwrapper-operator-config"} {
		data := fmt.Sprint(find(t, objects(t, all.Manifest), id).Data)
		if !strings.Contains(data, "amd.com/gpu") {
			t.Errorf("%s does not know amd.com/gpu:\n%s", id, data)
		}
	}
	if strings.Contains(all.Manifest, "nvidia.com/gpu") {
		t.Error("some part still goes by nvidia.com/gpu")
	}
	if !strings.Contains(all.Info.Notes, "amd.com/gpu") {
		t.Errorf("the notes do not say that teams and jobs have to use the name:\n%s", all.Info.Notes)
	}
	// Charts of their own, rendered without the platform's values, have the same default.
	platforms := single(t, "mlbatch").Values["global"].(map[string]any)["gpuResourceName"]
	gpu := single(t, "pytorchjob-generator").Values["resources"].(map[string]any)["gpu"].(map[string]any)
	if gpu["resourceName"] != platforms {
		t.Errorf("jobs ask for %v, and the platform goes by %v", gpu["resourceName"], platforms)
	}
}

// What the requirements of the umbrella must not take for a mistake.
func TestTheRequirementsLetPass(t *testing.T) {
	off := map[string]any{"enabled": false}
	tag := func(tag string) map[string]any {
		return map[string]any{"coscheduler": map[string]any{"scheduler": map[string]any{"image": map[string]any{"tag": tag}}}}
	}
	for name, row := range map[string]struct {
		kubernetes string
		values     map[string]any
	}{
		"a scheduler as old as the cluster":    {"v1.30.4", tag("v0.30.6")},
		"a newer cluster":                      {"v1.36.0", nil},
		"a tag that says no version":           {"v1.30.4", tag("stable-2026")},
		"a tag that is only a digest":          {"v1.30.4", tag("sha256-0f3")},
		"an old cluster without our scheduler": {"v1.30.4", map[string]any{"coscheduler": off}},
		"one other name for all": {"v1.34.4", map[string]any{
			"coscheduler":       map[string]any{"scheduler": map[string]any{"name": "gangs"}},
			"training-operator": map[string]any{"gangSchedulerName": "gangs"},
			"appwrapper":        map[string]any{"config": map[string]any{"appwrapper": map[string]any{"schedulerName": "gangs"}}},
		}},
		"wrapped pods that are left alone": {"v1.34.4", map[string]any{
			"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{"schedulerName": ""}}},
		}},
		"an empty section of the controller's configuration": {"v1.34.4", map[string]any{
			"appwrapper": map[string]any{"config": map[string]any{"appwrapper": nil}},
		}},
		"kinds that members could not create anyway": {"v1.34.4", map[string]any{
			"training-operator": map[string]any{"kinds": []any{"tfjob"}},
			"kueue":             kueueReads("integrations: {frameworks: [workload.codeflare.dev/appwrapper, ray.io/rayjob, ray.io/raycluster]}"),
		}},
		"elections of Kueue that are left to it": {"v1.34.4", map[string]any{"kueue": kueueReads(
			"integrations: {frameworks: [workload.codeflare.dev/appwrapper, kubeflow.org/pytorchjob, ray.io/rayjob, ray.io/raycluster]}\nleaderElection: null")}},
		"a switch of before that decides nothing any more": {"v1.34.4", map[string]any{
			"appwrapper": map[string]any{"podDisruptionBudget": map[string]any{"enabled": true}},
		}},
		"names of parts that are off": {"v1.34.4", map[string]any{
			"coscheduler": map[string]any{"scheduler": map[string]any{"name": "gangs"}}, "training-operator": off, "appwrapper": off,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := renderFor(t, row.kubernetes, "mlbatch", row.values); err != nil {
				t.Error(err)
			}
		})
	}
}

// kueueReads are values with the least that the requirements want of Kueue's configuration.
func kueueReads(more string) map[string]any {
	const least = "manageJobsWithoutQueueName: true\nmanagedJobsNamespaceSelector: {matchLabels: {mlbatch-team-namespace: 'true'}}\n"
	return map[string]any{"managerConfig": map[string]any{"controllerManagerConfigYaml": least + more}}
}

func TestPoliciesAdmitThePortsThatProgramsListenOn(t *testing.T) {
	const frameworks = "integrations: {frameworks: [workload.codeflare.dev/appwrapper, kubeflow.org/pytorchjob, ray.io/rayjob, ray.io/raycluster]}\n"
	for name, row := range map[string]struct {
		values map[string]any
		policy string
		want   []int32
	}{
		"Kueue's": {nil, "kueue-controller-manager", []int32{9443, 8443, 8082, 8081}},
		"Kueue's, which says nothing of them": {
			map[string]any{"kueue": kueueReads(frameworks)}, "kueue-controller-manager", []int32{9443, 8443, 8082, 8081},
		},
		"Kueue's, which says others": {map[string]any{"kueue": kueueReads(frameworks +
			"webhook: {port: 10443}\nmetrics: {bindAddress: '0.0.0.0:9090'}\nhealth: {healthProbeBindAddress: ':9091'}\nvisibilityServer: {bindPort: 9092}")},
			"kueue-controller-manager", []int32{10443, 9090, 9092, 9091}},
		"Kueue's without metrics": {
			map[string]any{"kueue": kueueReads(frameworks + "metrics: {bindAddress: '0'}")}, "kueue-controller-manager", []int32{9443, 8082, 8081},
		},
		"those of LeaderWorkerSet": {
			map[string]any{"leaderworkerset": map[string]any{"enabled": true, "service": map[string]any{"port": 9444}}},
			"lws-controller-manager", []int32{9443, 9444, 8443, 8081},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, "mlbatch", row.values)
			if err != nil {
				t.Fatal(err)
			}
			for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
				if o := parse(t, document); o.id() != "NetworkPolicy/"+row.policy {
					continue
				}
				var got []int32
				for _, port := range read[networkingv1.NetworkPolicy](t, document).Spec.Ingress[0].Ports {
					got = append(got, port.Port.IntVal)
				}
				if !slices.Equal(got, row.want) {
					t.Errorf("the policy admits %d, want %d", got, row.want)
				}
				return
			}
			t.Error("there is no policy")
		})
	}
}

func TestTheNotesNameTheSchedulerThatHasToBeThere(t *testing.T) {
	off := map[string]any{"enabled": false}
	for name, row := range map[string]struct {
		values map[string]any
		want   bool
	}{
		"ours":                      {nil, false},
		"nobody's":                  {map[string]any{"coscheduler": off, "training-operator": off}, true},
		"nobody's, and nobody asks": {map[string]any{"coscheduler": off, "training-operator": off, "appwrapper": off}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, "mlbatch", row.values)
			if err != nil {
				t.Fatal(err)
			}
			sentence := "no scheduler are given to " + must(versions())(t).SchedulerName
			if got := strings.Contains(rendered.Info.Notes, sentence); got != row.want {
				t.Errorf("the notes are\n%s", rendered.Info.Notes)
			}
		})
	}
}

// With another account nothing that is queued would ever start, whoever installed Kueue.
func TestTheNotesNameKueuesServiceAccounts(t *testing.T) {
	off := map[string]any{"enabled": false}
	accounts := func(names ...any) map[string]any {
		return map[string]any{"config": map[string]any{"appwrapper": map[string]any{"kueue": map[string]any{"serviceAccounts": names}}}}
	}
	const sentence = "Kueue is who starts what is queued"
	for name, row := range map[string]struct {
		values map[string]any
		want   string
	}{
		"ours":              {nil, "  mlbatch-system/kueue-controller-manager\n  kueue-system/kueue-controller-manager\n"},
		"yours":             {map[string]any{"kueue": off}, "  mlbatch-system/kueue-controller-manager\n  kueue-system/kueue-controller-manager\n"},
		"one of your own":   {map[string]any{"kueue": off, "appwrapper": accounts("rhoai/kueue")}, "serviceAccounts):\n  rhoai/kueue\n"},
		"none to be obeyed": {map[string]any{"kueue": off, "appwrapper": off}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, "mlbatch", row.values)
			if err != nil {
				t.Fatal(err)
			}
			notes := rendered.Info.Notes + "\n"
			if strings.Contains(notes, sentence) != (row.want != "") || !strings.Contains(notes, row.want) {
				t.Errorf("the notes are\n%s", notes)
			}
		})
	}
}

func TestOurMutatingWebhooksAreCalledBeforeKueues(t *testing.T) {
	for _, name := range []string{"a", "mlbatch", "zzz-platform"} {
		rendered, err := packaging.Render(t.Context(), load(t, "mlbatch"), name, namespace, "v1.34.0", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range objects(t, rendered.Manifest) {
			if o.Kind == "MutatingWebhookConfiguration" {
				got = append(got, o.Name)
			}
		}
		// The API server calls them in the order of their names.
		slices.Sort(got)
		want := []string{"appwrapper-mutating-webhook-configuration", "kueue-mutating-webhook-configuration"}
		if !slices.Equal(got, want) {
			t.Errorf("release %s: webhooks are called in the order %q, want %q", name, got, want)
		}
	}
}

// The controller takes this account for Kueue's unless it is told otherwise, and lets no
// other start what is queued.
func TestKueueHasTheAccountThatMayStartWork(t *testing.T) {
	kueue := find(t, platform(t, nil), "Deployment/kueue-controller-manager")
	if account := kueue.Spec.Template.Spec.ServiceAccountName; account != "kueue-controller-manager" {
		t.Errorf("Kueue runs as %s", account)
	}
}

// The controller warns of queues where Kueue does not look.
func TestKueueAndTheControllerAgreeOnNamespaces(t *testing.T) {
	all := platform(t, nil)
	var queues kueueconfig.Configuration
	decode(t, find(t, all, "ConfigMap/kueue-manager-config").Data["controller_manager_config.yaml"], &queues)
	var controller struct {
		AppWrapper struct {
			Kueue struct{ ManagedJobsNamespaceSelector *metav1.LabelSelector }
		}
	}
	if err := yaml.Unmarshal([]byte(find(t, all, "ConfigMap/appwrapper-operator-config").Data["config.yaml"]), &controller); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(queues.ManagedJobsNamespaceSelector, controller.AppWrapper.Kueue.ManagedJobsNamespaceSelector); diff != "" {
		t.Errorf("(-Kueue +controller)\n%s", diff)
	}
}

// A Workload with more pod sets than Kueue takes could never be made.
func TestThePodSetLimitIsThatOfThePinnedKueue(t *testing.T) {
	rendered, err := render(t, "mlbatch", nil)
	if err != nil {
		t.Fatal(err)
	}
	var controller struct{ AppWrapper struct{ PodSetLimit int64 } }
	if err := yaml.Unmarshal([]byte(find(t, objects(t, rendered.Manifest), "ConfigMap/appwrapper-operator-config").Data["config.yaml"]), &controller); err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Properties map[string]struct {
			Properties map[string]struct{ MaxItems int64 }
		}
	}
	var workloads struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		if parse(t, document).Name == "workloads.kueue.x-k8s.io" {
			if err := yaml.Unmarshal([]byte(document), &workloads); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, version := range workloads.Spec.Versions {
		if kueues := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["podSets"].MaxItems; kueues != controller.AppWrapper.PodSetLimit {
			t.Errorf("the controller takes %d pod sets, and Kueue %d", controller.AppWrapper.PodSetLimit, kueues)
		}
	}
	if len(workloads.Spec.Versions) == 0 {
		t.Error("Kueue brings no Workloads")
	}
}

// A configuration of a webhook that nobody serves would refuse every AppWrapper.
func TestWebhooksThatAreSwitchedOffAreNotCalled(t *testing.T) {
	off := map[string]any{"config": map[string]any{"webhooksEnabled": false}}
	rendered, err := render(t, "appwrapper", off)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, rendered.Manifest) {
		if strings.HasSuffix(o.Kind, "WebhookConfiguration") {
			t.Errorf("%s is rendered", o.id())
		}
	}
}

// optionalParts are values that switch on what is off by default.
func optionalParts() map[string]any {
	on := map[string]any{"enabled": true}
	values := map[string]any{}
	for _, p := range parts.All {
		if p.Optional {
			values[p.Name] = on
		}
	}
	return values
}

// maxRelease leaves a third of the 1 MiB that a Secret may have to values.
const maxRelease = 700 << 10

func TestTheStoredReleaseFitsItsSecret(t *testing.T) {
	values := optionalParts()
	values["training-operator"] = map[string]any{"kinds": []any{"pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob", "mpijob"}}
	rendered, err := render(t, "mlbatch", values)
	if err != nil {
		t.Fatal(err)
	}
	size := len(stored(t, rendered))
	t.Logf("the stored release has %d KiB", size>>10)
	if size > maxRelease {
		t.Errorf("the stored release has %d bytes, more than %d", size, maxRelease)
	}
}

// stored encodes a release as Helm does for its Secret.
func stored(t *testing.T, r *release.Release) string {
	t.Helper()
	text := must(json.Marshal(r))(t)
	var packed bytes.Buffer
	zip := must(gzip.NewWriterLevel(&packed, gzip.BestCompression))(t)
	if _, err := zip.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

func TestEveryImageIsTheOneOfVersionsYAML(t *testing.T) {
	v := must(versions())(t)
	known := parts.References(v)
	var got []string
	for _, o := range platform(t, optionalParts()) {
		got = append(got, o.images()...)
	}
	slices.Sort(known)
	slices.Sort(got)
	if !slices.Equal(got, known) {
		t.Errorf("rendered images\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(known, "\n"))
	}
	for _, image := range got {
		if registry, _, _ := strings.Cut(image, "/"); !strings.Contains(registry, ".") {
			t.Errorf("image %s does not name its registry", image)
		}
	}
}

func TestKueueReadsItsConfiguration(t *testing.T) {
	var config kueueconfig.Configuration
	text := find(t, platform(t, nil), "ConfigMap/kueue-manager-config").Data["controller_manager_config.yaml"]
	decode(t, text, &config)
	if len(config.Integrations.Frameworks) == 0 {
		t.Error("no frameworks are listed")
	}
	if config.WaitForPodsReady != nil {
		t.Error("AppWrapper owns the recovery of pods that do not become ready")
	}
}

// TestThePinnedKueueKnowsOurGates fails when Kueue drops a gate: then it has to
// be decided anew how AppWrapper's recovery and Kueue's get along.
func TestThePinnedKueueKnowsOurGates(t *testing.T) {
	args := find(t, platform(t, nil), "Deployment/kueue-controller-manager").containers()[0].Args
	want := fmt.Sprintf("--feature-gates=%s=true,%s=false", features.DisableWaitForPodsReady, features.FinishOrphanedWorkloads) //nolint:staticcheck // That it is deprecated is why this test is here.
	if !slices.Contains(args, want) {
		t.Errorf("Kueue runs with %q, without %s", args, want)
	}
	gates := feature.DefaultMutableFeatureGate.DeepCopy()
	if err := gates.Set(strings.TrimPrefix(want, "--feature-gates=")); err != nil {
		t.Errorf("the pinned Kueue refuses the gates: %v", err)
	}
}

// Neither Helm nor Argo CD removes a kind, and with it all work of that kind,
// because a part is switched off.
func TestCRDsOutliveTheRelease(t *testing.T) {
	var kinds []string
	for _, o := range platform(t, optionalParts()) {
		if o.Kind != "CustomResourceDefinition" {
			continue
		}
		kinds = append(kinds, o.Name)
		for name, want := range map[string]string{
			"helm.sh/resource-policy":         "keep",
			"argocd.argoproj.io/sync-options": "Prune=false,ServerSideApply=true",
		} {
			if got := o.Annotations[name]; got != want {
				t.Errorf("%s: %s is %q, want %q", o.Name, name, got, want)
			}
		}
	}
	for _, name := range []string{
		"appwrappers.workload.codeflare.dev", "clusterqueues.kueue.x-k8s.io", "podgroups.scheduling.x-k8s.io",
		"pytorchjobs.kubeflow.org", "rayclusters.ray.io",
	} {
		if !slices.Contains(kinds, name) {
			t.Errorf("%s is not rendered", name)
		}
	}
}

// Helm installs what is in the folder crds of a chart once, and never upgrades it.
func TestCRDsAreUpgradedWithTheRelease(t *testing.T) {
	for _, name := range []string{"mlbatch", "appwrapper", "teams"} {
		for _, crd := range load(t, name).CRDObjects() {
			t.Errorf("chart %s has %s in a folder crds", name, crd.Filename)
		}
	}
}

func TestNothingIsAHook(t *testing.T) {
	rendered, err := render(t, "mlbatch", optionalParts())
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range rendered.Hooks {
		t.Errorf("%s %s is a hook, which GitOps tools run otherwise or not at all", hook.Kind, hook.Name)
	}
}

func TestTheLocalClusterHasRoomForThePlatform(t *testing.T) {
	text := must(os.ReadFile(filepath.Join("..", "setup", "profiles", "localcluster.yaml")))(t)
	total := int64(0)
	all := values(t, text)
	for _, part := range []string{"jobset", "leaderworkerset"} {
		all[part].(map[string]any)["enabled"] = true
	}
	for _, o := range platform(t, all) {
		if o.Kind == "Deployment" && o.Spec.Template.Spec.NodeSelector["localcluster.mlbatch.dev/real"] != "true" {
			t.Errorf("%s would not stay on the real node", o.Name)
		}
		for _, container := range o.containers() {
			total += container.Resources.Requests.Cpu().MilliValue()
		}
	}
	if total > 500 {
		t.Errorf("the platform asks for %d thousandths of a CPU; 500 leave room for work", total)
	}
}

// OpenShift's restricted-v2 refuses pods that name a user. Of Kueue's values none does.
func TestNothingChoosesAUserOnOpenShift(t *testing.T) {
	text := must(os.ReadFile(filepath.Join("..", "setup", "profiles", "openshift.yaml")))(t)
	rendered, err := render(t, "mlbatch", values(t, text))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		o := parse(t, document)
		// The ConfigMaps have the init container that workers of PyTorchJobs are given.
		if o.Kind != "Deployment" && o.Kind != "ConfigMap" {
			continue
		}
		seen += strings.Count(document, "runAsNonRoot: true")
		if strings.Contains(document, "runAsUser") {
			t.Errorf("%s chooses a user:\n%s", o.id(), document)
		}
	}
	if want := 7; seen != want {
		t.Errorf("%d of %d pods and init containers must not run as root", seen, want)
	}
}

func TestTheDemoTeamsRender(t *testing.T) {
	text := must(os.ReadFile(filepath.Join("..", "setup", "teams", "demo.yaml")))(t)
	if _, err := render(t, "teams", values(t, text)); err != nil {
		t.Error(err)
	}
}

// decode is strict: a key that the reader does not know fails the test.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	if text == "" {
		t.Fatal("the ConfigMap has no such key")
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
