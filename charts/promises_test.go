// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/feature"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	kueueconfig "sigs.k8s.io/kueue/apis/config/v1beta2"
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/tools/artifacts/charts/packaging"
	"github.com/mlbatch/mlbatch/tools/mlbatch/images"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// platform renders the umbrella chart with the given values.
func platform(t *testing.T, in map[string]any) []object {
	t.Helper()
	rendered, err := render(t, "mlbatch", in)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, rendered.Manifest)
}

func TestAllPartsUseOneSchedulerName(t *testing.T) {
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
		t.Errorf("the controller assigns pods to %q, want %q", got, want)
	}
	// The generator sets no scheduler, so that the platform chooses it.
	rendered, err := render(t, "pytorchjob-generator", map[string]any{"jobName": "a", "containerImage": "example.com/a:1"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(rendered.Manifest, "schedulerName") {
		t.Errorf("the generator sets a scheduler:\n%s", rendered.Manifest)
	}
}

func TestAllPartsUseOneAcceleratorName(t *testing.T) {
	all, err := render(t, "mlbatch", map[string]any{"global": map[string]any{"gpuResourceName": "amd.com/gpu"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"ConfigMap/scheduler-config", "ConfigMap/appwrapper-operator-config"} {
		data := fmt.Sprint(find(t, objects(t, all.Manifest), id).Data)
		if !strings.Contains(data, "amd.com/gpu") {
			t.Errorf("%s does not contain amd.com/gpu:\n%s", id, data)
		}
	}
	if strings.Contains(all.Manifest, "nvidia.com/gpu") {
		t.Error("a part still uses nvidia.com/gpu")
	}
	if !strings.Contains(all.Info.Notes, "amd.com/gpu") {
		t.Errorf("the notes do not contain the resource name:\n%s", all.Info.Notes)
	}
	// Separate charts, which do not get the platform's values, have the same default.
	platforms := single(t, "mlbatch").Values["global"].(map[string]any)["gpuResourceName"]
	gpu := single(t, "pytorchjob-generator").Values["resources"].(map[string]any)["gpu"].(map[string]any)
	if gpu["resourceName"] != platforms {
		t.Errorf("jobs request %v, but the platform uses %v", gpu["resourceName"], platforms)
	}
}

// Values that the requirements of the umbrella chart must not refuse.
func TestRequirementsAcceptValidValues(t *testing.T) {
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
		"a tag without a version":              {"v1.30.4", tag("stable-2026")},
		"a tag that is only a digest":          {"v1.30.4", tag("sha256-0f3")},
		"a newer release for a newer cluster":  {"v1.36.0", tag("v0.36.1")},
		"an old cluster without our scheduler": {"v1.30.4", map[string]any{"coscheduler": off}},
		"another name, the same for all": {"v1.34.4", map[string]any{
			"coscheduler":       map[string]any{"scheduler": map[string]any{"name": "gangs"}},
			"training-operator": map[string]any{"gangSchedulerName": "gangs"},
			"appwrapper":        map[string]any{"config": map[string]any{"appwrapper": map[string]any{"schedulerName": "gangs"}}},
		}},
		"no scheduler for wrapped pods": {"v1.34.4", map[string]any{
			"appwrapper": map[string]any{"config": map[string]any{"appwrapper": map[string]any{"schedulerName": ""}}},
		}},
		"an empty section of the controller's configuration": {"v1.34.4", map[string]any{
			"appwrapper": map[string]any{"config": map[string]any{"appwrapper": nil}},
		}},
		"kinds that members cannot create": {"v1.34.4", map[string]any{
			"training-operator": map[string]any{"kinds": []any{"tfjob"}},
			"kueue":             kueueReads("integrations: {frameworks: [workload.codeflare.dev/appwrapper, ray.io/rayjob, ray.io/raycluster]}"),
		}},
		"Kueue's default leader election": {"v1.34.4", map[string]any{"kueue": kueueReads(
			"integrations: {frameworks: [workload.codeflare.dev/appwrapper, kubeflow.org/pytorchjob, ray.io/rayjob, ray.io/raycluster]}\nleaderElection: null")}},
		"a deprecated value without effect": {"v1.34.4", map[string]any{
			"appwrapper": map[string]any{"podDisruptionBudget": map[string]any{"enabled": true}},
		}},
		"names of disabled parts": {"v1.34.4", map[string]any{
			"coscheduler": map[string]any{"scheduler": map[string]any{"name": "gangs"}}, "training-operator": off, "appwrapper": off,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := renderLight(t, row.kubernetes, "mlbatch", row.values); err != nil {
				t.Error(err)
			}
		})
	}
}

// kueueReads are values with the minimum that the requirements need in Kueue's configuration.
func kueueReads(more string) map[string]any {
	const least = "manageJobsWithoutQueueName: true\nmanagedJobsNamespaceSelector: {matchLabels: {mlbatch-team-namespace: 'true'}}\n"
	return map[string]any{"managerConfig": map[string]any{"controllerManagerConfigYaml": least + more}}
}

// withPorts adds the Services of other ports, without which Kueue could not be reached there.
func withPorts(kueue map[string]any) map[string]any {
	for service, port := range map[string]int{"webhookService": 10443, "metricsService": 9090} {
		kueue[service] = map[string]any{"ports": []any{map[string]any{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}}}
	}
	return kueue
}

func TestNetworkPoliciesAllowTheListeningPorts(t *testing.T) {
	const frameworks = "integrations: {frameworks: [workload.codeflare.dev/appwrapper, kubeflow.org/pytorchjob, ray.io/rayjob, ray.io/raycluster]}\n"
	for name, row := range map[string]struct {
		values map[string]any
		policy string
		want   []int32
	}{
		"Kueue": {nil, "kueue-controller-manager", []int32{9443, 8443, 8082, 8081}},
		"Kueue without configured ports": {
			map[string]any{"kueue": kueueReads(frameworks)}, "kueue-controller-manager", []int32{9443, 8443, 8082, 8081},
		},
		"Kueue with other ports": {
			map[string]any{"kueue": withPorts(kueueReads(frameworks + "webhook: {port: 10443}\nmetrics: {bindAddress: '0.0.0.0:9090'}"))},
			"kueue-controller-manager", []int32{10443, 9090, 8082, 8081},
		},
		"Kueue without metrics": {
			map[string]any{"kueue": kueueReads(frameworks + "metrics: {bindAddress: '0'}")}, "kueue-controller-manager", []int32{9443, 8082, 8081},
		},
		"LeaderWorkerSet": {
			map[string]any{"leaderworkerset": map[string]any{"enabled": true, "service": map[string]any{"port": 9444}}},
			"lws-controller-manager", []int32{9443, 9444, 8443, 8081},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := renderLight(t, here(t), "mlbatch", row.values)
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
					t.Errorf("the policy allows %d, want %d", got, row.want)
				}
				return
			}
			t.Error("there is no policy")
		})
	}
}

func TestNotesNameTheRequiredScheduler(t *testing.T) {
	off := map[string]any{"enabled": false}
	for name, row := range map[string]struct {
		values map[string]any
		want   bool
	}{
		"it is enabled":                   {nil, false},
		"it is disabled":                  {map[string]any{"coscheduler": off, "training-operator": off}, true},
		"it is disabled and not required": {map[string]any{"coscheduler": off, "training-operator": off, "appwrapper": off}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := renderLight(t, here(t), "mlbatch", row.values)
			if err != nil {
				t.Fatal(err)
			}
			sentence := "no scheduler are assigned to " + must(versions())(t).SchedulerName
			if got := strings.Contains(rendered.Info.Notes, sentence); got != row.want {
				t.Errorf("the notes are\n%s", rendered.Info.Notes)
			}
		})
	}
}

// With another ServiceAccount, no queued work would ever start.
func TestNotesNameKueuesServiceAccounts(t *testing.T) {
	off := map[string]any{"enabled": false}
	accounts := func(names ...any) map[string]any {
		return map[string]any{"config": map[string]any{"appwrapper": map[string]any{"kueue": map[string]any{"serviceAccounts": names}}}}
	}
	const sentence = "Only these service accounts may start queued work"
	for name, row := range map[string]struct {
		values map[string]any
		want   string
	}{
		"Kueue is enabled":           {nil, "  mlbatch-system/kueue-controller-manager\n  kueue-system/kueue-controller-manager\n"},
		"Kueue is disabled":          {map[string]any{"kueue": off}, "  mlbatch-system/kueue-controller-manager\n  kueue-system/kueue-controller-manager\n"},
		"another account":            {map[string]any{"kueue": off, "appwrapper": accounts("rhoai/kueue")}, "serviceAccounts):\n  rhoai/kueue\n"},
		"the controller is disabled": {map[string]any{"kueue": off, "appwrapper": off}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := renderLight(t, here(t), "mlbatch", row.values)
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

func TestMutatingWebhooksRunBeforeKueues(t *testing.T) {
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
			t.Errorf("release %s: webhooks run in the order %q, want %q", name, got, want)
		}
	}
}

// By default, the controller allows only this ServiceAccount to start queued work.
func TestKueueRunsAsTheAccountThatMayStartWork(t *testing.T) {
	kueue := find(t, platform(t, nil), "Deployment/kueue-controller-manager")
	if account := kueue.Spec.Template.Spec.ServiceAccountName; account != "kueue-controller-manager" {
		t.Errorf("Kueue runs as %s", account)
	}
}

// The controller warns about queues in namespaces that Kueue does not manage.
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

// Kueue cannot create a Workload with more pod sets than it accepts.
func TestPodSetLimitMatchesThePinnedKueue(t *testing.T) {
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
			t.Errorf("the controller accepts %d pod sets, but Kueue %d", controller.AppWrapper.PodSetLimit, kueues)
		}
	}
	if len(workloads.Spec.Versions) == 0 {
		t.Error("Kueue has no Workload CRD")
	}
}

// A webhook configuration without a server would refuse every AppWrapper.
func TestDisabledWebhooksAreNotConfigured(t *testing.T) {
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

// optionalParts are values that enable the parts that are disabled by default.
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

// maxRelease leaves a third of a Secret's maximum of 1 MiB for values.
const maxRelease = 700 << 10

func TestStoredReleaseFitsInASecret(t *testing.T) {
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

func TestImagesMatchVersionsYAML(t *testing.T) {
	v := must(versions())(t)
	known := parts.References(v, parts.All...)
	var got []string
	for _, o := range platform(t, optionalParts()) {
		got = append(got, o.images()...)
	}
	slices.Sort(known)
	slices.Sort(got)
	got = slices.Compact(got)
	if !slices.Equal(got, known) {
		t.Errorf("rendered images\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(known, "\n"))
	}
	for _, image := range got {
		if registry, _, _ := strings.Cut(image, "/"); !strings.Contains(registry, ".") {
			t.Errorf("image %s does not name its registry", image)
		}
	}
}

// TestEveryImageCanBeMirrored: what 'mlbatch images' lists is what is pulled, and with its values
// nothing is pulled from elsewhere.
func TestEveryImageCanBeMirrored(t *testing.T) {
	v := must(versions())(t)
	minor := strings.Join(strings.Split(strings.TrimPrefix(v.LocalCluster.Kubernetes, "v"), ".")[:2], ".")
	all := must(images.Of(must(chartutil.CoalesceValues(load(t, "mlbatch"), optionalParts()))(t), v, minor))(t)
	var listed, pulled []string
	for _, image := range all {
		listed = append(listed, image.Reference)
	}
	for _, o := range platform(t, optionalParts()) {
		pulled = append(pulled, o.images()...)
	}
	slices.Sort(listed)
	slices.Sort(pulled)
	if listed, pulled = slices.Compact(listed), slices.Compact(pulled); !slices.Equal(listed, pulled) {
		t.Errorf("listed\n%s\npulled\n%s", strings.Join(listed, "\n"), strings.Join(pulled, "\n"))
	}
	mirrored := chartutil.CoalesceTables(images.Values("registry.example.com/mirror", "company"), optionalParts())
	rendered := must(render(t, "mlbatch", mirrored))(t)
	listed, pulled = nil, nil
	for _, image := range must(images.From("registry.example.com/mirror", all))(t) {
		listed = append(listed, image.Reference)
	}
	for _, o := range objects(t, rendered.Manifest) {
		pulled = append(pulled, o.images()...)
	}
	slices.Sort(listed)
	slices.Sort(pulled)
	if listed, pulled = slices.Compact(listed), slices.Compact(pulled); !slices.Equal(listed, pulled) {
		t.Errorf("the mirror has\n%s\npulled\n%s", strings.Join(listed, "\n"), strings.Join(pulled, "\n"))
	}
	if template := find(t, objects(t, rendered.Manifest), "ConfigMap/training-operator-config").Data["initContainer.yaml"]; strings.Contains(template, "docker.io") {
		t.Errorf("the init container of PyTorchJobs is\n%s", template)
	}
	for _, d := range build(t, rendered.Manifest).deployments {
		if secrets := d.Spec.Template.Spec.ImagePullSecrets; len(secrets) != 1 || secrets[0].Name != "company" {
			t.Errorf("%s pulls with the Secrets %v", d.Name, secrets)
		}
	}
}

// TestGlobalsAreWrittenAsInOtherCharts: a chart around ours may have globals of other charts, which name
// Secrets without a key. A part's own Secrets stay, and an image without a registry gets one.
func TestGlobalsAreWrittenAsInOtherCharts(t *testing.T) {
	rendered := must(render(t, "mlbatch", map[string]any{
		"global":     map[string]any{"imageRegistry": "registry.example.com/", "imagePullSecrets": []any{"company"}, "theirs": 1},
		"appwrapper": map[string]any{"imagePullSecrets": []any{map[string]any{"name": "own"}}, "image": map[string]any{"repository": "controller", "tag": "1"}},
	}))(t)
	for _, d := range build(t, rendered.Manifest).deployments {
		var secrets []string
		for _, secret := range d.Spec.Template.Spec.ImagePullSecrets {
			secrets = append(secrets, secret.Name)
		}
		want := []string{"company"}
		if d.Name == "appwrapper-controller-manager" {
			want = []string{"own", "company"}
			if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/controller:1" {
				t.Errorf("its image is %s", image)
			}
		}
		if !slices.Equal(secrets, want) {
			t.Errorf("%s pulls with %q, want %q", d.Name, secrets, want)
		}
	}
}

func TestKueueAcceptsItsConfiguration(t *testing.T) {
	var config kueueconfig.Configuration
	text := find(t, platform(t, nil), "ConfigMap/kueue-manager-config").Data["controller_manager_config.yaml"]
	decode(t, text, &config)
	if len(config.Integrations.Frameworks) == 0 {
		t.Error("no frameworks are listed")
	}
	if config.WaitForPodsReady != nil {
		t.Error("waitForPodsReady is set, but the AppWrapper controller handles pods that do not become ready")
	}
}

// Kueue would start only with keys that it knows. Those at the top are in the schema of the umbrella chart.
func TestTheSchemaHasTheKeysOfKueuesConfiguration(t *testing.T) {
	var schema struct {
		Properties struct {
			Kueue struct {
				Properties struct {
					ManagerConfig struct {
						Properties struct {
							Configuration struct{ Properties map[string]any }
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(single(t, "mlbatch").Schema, &schema); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[kueueconfig.Configuration]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "apiVersion" && name != "kind" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(schema.Properties.Kueue.Properties.ManagerConfig.Properties.Configuration.Properties)); !slices.Equal(got, want) {
		t.Errorf("the schema has\n%q, and Kueue\n%q", got, want)
	}
}

// TestKueuesConfigurationIsMerged: what is not named stays as it is, null removes, and a list replaces. A text
// takes the place of all.
func TestKueuesConfigurationIsMerged(t *testing.T) {
	read := func(managerConfig map[string]any) (c kueueconfig.Configuration) {
		values := map[string]any{"kueue": map[string]any{"managerConfig": managerConfig}}
		decode(t, find(t, platform(t, values), "ConfigMap/kueue-manager-config").Data["controller_manager_config.yaml"], &c)
		return c
	}
	merged := read(map[string]any{"configuration": map[string]any{
		"clientConnection": map[string]any{"qps": 50}, "fairSharing": nil, "multiKueue": map[string]any{"origin": "here"},
	}})
	if *merged.ClientConnection.QPS != 50 || *merged.ClientConnection.Burst != 2000 || *merged.MultiKueue.Origin != "here" || merged.FairSharing != nil || !merged.ManageJobsWithoutQueueName {
		t.Errorf("it is %+v", merged)
	}
	least := kueueReads("integrations: {frameworks: [workload.codeflare.dev/appwrapper, kubeflow.org/pytorchjob, ray.io/rayjob, ray.io/raycluster]}")
	if text := read(least["managerConfig"].(map[string]any)); text.ClientConnection != nil || len(text.Integrations.Frameworks) != 4 {
		t.Errorf("it is %+v", text)
	}
}

// TestPinnedKueueAcceptsTheFeatureGates fails if Kueue removes a gate. Then decide again how
// the recovery by the AppWrapper controller and by Kueue work together.
func TestPinnedKueueAcceptsTheFeatureGates(t *testing.T) {
	args := find(t, platform(t, nil), "Deployment/kueue-controller-manager").containers()[0].Args
	want := fmt.Sprintf("--feature-gates=%s=true,%s=false,%s=true,%s=false", features.DisableWaitForPodsReady, features.FinishOrphanedWorkloads, features.PrioritizePreemptorWorkloads, features.VisibilityOnDemand) //nolint:staticcheck // This test exists because it is deprecated.
	if !slices.Contains(args, want) {
		t.Errorf("Kueue runs with %q, without %s", args, want)
	}
	gates := feature.DefaultMutableFeatureGate.DeepCopy()
	if err := gates.Set(strings.TrimPrefix(want, "--feature-gates=")); err != nil {
		t.Errorf("the pinned Kueue refuses the gates: %v", err)
	}
}

// Neither Helm nor Argo CD deletes a CRD, and with it all resources of its kind, if a part
// is disabled.
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

// Helm never upgrades CRDs in a chart's crds folder.
func TestCRDsAreUpgradedWithTheRelease(t *testing.T) {
	for _, name := range []string{"mlbatch", "appwrapper", "teams"} {
		for _, crd := range load(t, name).CRDObjects() {
			t.Errorf("chart %s has %s in a folder crds", name, crd.Filename)
		}
	}
}

func TestThereAreNoHooks(t *testing.T) {
	rendered, err := render(t, "mlbatch", optionalParts())
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range rendered.Hooks {
		t.Errorf("%s %s is a hook, which GitOps tools run differently or not at all", hook.Kind, hook.Name)
	}
}

func TestPlatformFitsTheLocalCluster(t *testing.T) {
	text := must(os.ReadFile(filepath.Join("..", "setup", "profiles", "localcluster.yaml")))(t)
	total := int64(0)
	all := values(t, text)
	for _, part := range []string{"jobset", "leaderworkerset"} {
		all[part].(map[string]any)["enabled"] = true
	}
	for _, o := range platform(t, all) {
		if o.Kind == "Deployment" && o.Spec.Template.Spec.NodeSelector["localcluster.mlbatch.dev/real"] != "true" {
			t.Errorf("%s is not bound to the real node", o.Name)
		}
		for _, container := range o.containers() {
			total += container.Resources.Requests.Cpu().MilliValue()
		}
	}
	if total > 500 {
		t.Errorf("the platform requests %dm CPU; at most 500m leave room for work", total)
	}
}

// OpenShift's restricted-v2 refuses pods that set a user. Kueue's values set none.
func TestNoPodSetsAUserOnOpenShift(t *testing.T) {
	text := must(os.ReadFile(filepath.Join("..", "setup", "profiles", "openshift.yaml")))(t)
	rendered, err := render(t, "mlbatch", values(t, text))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, document := range strings.Split(rendered.Manifest, "\n---\n") {
		o := parse(t, document)
		// A ConfigMap contains the init container of PyTorchJobs' workers.
		if o.Kind != "Deployment" && o.Kind != "ConfigMap" {
			continue
		}
		seen += strings.Count(document, "runAsNonRoot: true")
		if strings.Contains(document, "runAsUser") {
			t.Errorf("%s sets a user:\n%s", o.id(), document)
		}
	}
	if want := 7; seen != want {
		t.Errorf("%d of %d pods and init containers must not run as root", seen, want)
	}
}

func TestDemoTeamsRender(t *testing.T) {
	text := must(os.ReadFile(filepath.Join("..", "setup", "teams", "demo.yaml")))(t)
	if _, err := render(t, "teams", values(t, text)); err != nil {
		t.Error(err)
	}
}

// decode is strict: it fails the test on unknown keys.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	if text == "" {
		t.Fatal("the ConfigMap has no such key")
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
