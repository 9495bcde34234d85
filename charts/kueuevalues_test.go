// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	kueueconfig "sigs.k8s.io/kueue/apis/config/v1beta2"
	_ "sigs.k8s.io/kueue/pkg/features" // registers them
	"sigs.k8s.io/yaml"
)

// kueueTable is files/kueue.yaml: what becomes of each value of Kueue. A row is a text, or a judgement. What feature
// gates require is compared with Kueue in tools/artifacts/components/kueue/gates.
type kueueTable struct {
	Values, Configuration, FeatureGates map[string]any
	Requires                            map[string][]string
	OffByDefault                        []string
}

func tableOfKueue(t *testing.T) (table kueueTable) {
	t.Helper()
	if err := yaml.UnmarshalStrict(packaged(t, "mlbatch").Files["files/kueue.yaml"], &table); err != nil {
		t.Fatal(err)
	}
	return table
}

// schemaLeaves are the values that the schema of a chart knows.
func schemaLeaves(schema map[string]any, at string, found func(string)) {
	properties, _ := schema["properties"].(map[string]any)
	for name, nested := range properties {
		if below, is := nested.(map[string]any); is && below["properties"] != nil {
			schemaLeaves(below, at+name+".", found)
			continue
		}
		found(at + name)
	}
}

// fieldLeaves are the fields of a type by their names in YAML, and those of the items of its lists.
func fieldLeaves(of reflect.Type, at string, found func(string)) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		kind := field.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if items := kind; items.Kind() == reflect.Slice && isSection(items.Elem(), of) {
			fieldLeaves(items.Elem(), at+name+"[].", found)
		}
		section := isSection(kind, of)
		switch {
		case name == "" && section:
			fieldLeaves(kind, at, found)
		case name == "": // apiVersion and kind
		case section:
			fieldLeaves(kind, at+name+".", found)
		default:
			found(at + name)
		}
	}
}

// isSection reports whether a type is a section of the configuration whose type is of.
func isSection(kind, of reflect.Type) bool {
	return kind.Kind() == reflect.Struct && (kind.PkgPath() == of.PkgPath() || strings.Contains(kind.PkgPath(), "component-base/config"))
}

// kueueGates are the feature gates that Kueue has. Those of Kubernetes, which are registered beside them, are of
// versions from 1 on.
func kueueGates(found func(string)) {
	for name, specs := range utilfeature.DefaultMutableFeatureGate.GetAllVersioned() {
		if specs[0].Version.Major() == 0 {
			found(string(name))
		}
	}
}

// A new version of Kueue may bring values. Somebody has to say what becomes of each, before a user finds out.
func TestEveryValueOfKueueIsJudged(t *testing.T) {
	table, schema := tableOfKueue(t), map[string]any{}
	if err := json.Unmarshal(packaged(t, "mlbatch").Files["charts/kueue/values.schema.json"], &schema); err != nil {
		t.Fatal(err)
	}
	judge := func(rows map[string]any, walk func(func(string))) {
		unused := maps.Clone(rows)
		walk(func(leaf string) {
			section := leaf
			for rows[section] == nil {
				i := strings.LastIndexByte(strings.TrimSuffix(section, ".*"), '.')
				if i < 0 {
					t.Errorf("files/kueue.yaml does not say what becomes of %s", leaf)
					return
				}
				section = section[:i] + ".*"
			}
			delete(unused, section)
		})
		if len(unused) > 0 {
			t.Errorf("Kueue has no %q: remove them from files/kueue.yaml", slices.Sorted(maps.Keys(unused)))
		}
	}
	judge(table.Values, func(found func(string)) { schemaLeaves(schema, "", found) })
	judge(table.FeatureGates, kueueGates)
	judge(table.Configuration, func(found func(string)) { fieldLeaves(reflect.TypeFor[kueueconfig.Configuration](), "", found) })
}

// wrongForKueue has a value that files/kueue.yaml does not allow, for each of its rows.
const wrongForKueue = `
nameOverride: queues
certManager: {issuerRef: {name: mine}}
enableVisibilityAuthReaderRoleBinding: false
enableKueueViz: true
metricsService: {labels: {a: b}, ports: [{name: metrics, port: 8443, targetPort: 8443}]}
webhookService: {ports: [{port: 9443, targetPort: 9443}]}
serviceAccount: {create: true, name: mine}
managerConfig:
  configuration:
    namespace: other
    webhook: {port: 10443, host: 127.0.0.1, certDir: /certificates}
    leaderElection: {resourceLock: endpoints, resourceNamespace: other}
    metrics: {bindAddress: ":9090", enableClusterQueueResources: false, customLabels: [{name: team}]}
    fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
    health: {healthProbeBindAddress: ":9091", readinessEndpointName: ready, livenessEndpointName: alive}
    internalCertManagement: {enable: false}
    featureGates: {LocalQueueMetrics: true}
    admissionFairSharing: {usageHalfLifeTime: 1h}
    resources:
      quotaCheckStrategy: IgnoreUndeclared
      excludeResourcePrefixes: [example.com/]
      transformations: [{input: example.com/a, outputs: {example.com/b: 1}}]
    objectRetentionPolicies: {workloads: {afterDeactivatedByKueue: 1h}}
    visibilityServer: {bindAddress: 127.0.0.1, bindPort: 9092}
`

func TestValuesThatKueueCannotHaveAreRefusedOrNoted(t *testing.T) {
	wrong := map[string]any{}
	if err := yaml.Unmarshal([]byte(wrongForKueue), &wrong); err != nil {
		t.Fatal(err)
	}
	wrong["controllerManager"] = map[string]any{"featureGates": otherGates(tableOfKueue(t), "refuse")}
	_, refused := renderLight(t, here(t), "mlbatch", map[string]any{"kueue": wrong})
	if refused == nil {
		t.Fatal("nothing is refused")
	}
	table := tableOfKueue(t)
	harmless := map[string]any{"kueue": onlyNoted(table, wrong)}
	notes := must(renderLight(t, here(t), "mlbatch", harmless))(t).Info.Notes
	for part, rows := range map[string]map[string]any{
		"kueue.%": table.Values, "% in kueue.managerConfig.configuration": table.Configuration,
		"% in kueue.controllerManager.featureGates": table.FeatureGates,
	} {
		for name, row := range rows {
			judgement, is := row.(map[string]any)
			if !is {
				continue
			}
			at := strings.Replace(part, "%", strings.TrimSuffix(name, ".*"), 1)
			if sentence, is := judgement["refuse"].(string); is && !strings.Contains(refused.Error(), at+" "+sentence) {
				t.Errorf("%s is not refused", at)
			}
			if sentence, is := judgement["note"].(string); is && !strings.Contains(notes, at+" "+sentence) {
				t.Errorf("%s is not noted", at)
			}
			delete(judgement, "refuse")
			delete(judgement, "note")
			delete(judgement, "unless")
			delete(judgement, "needed")
			if diff := cmp.Diff(map[string]any{}, judgement); diff != "" {
				t.Errorf("%s has other keys (-want +got)\n%s", at, diff)
			}
		}
	}
}

// otherGates sets the feature gates with a verdict to what they are not by default, besides the platform's own.
func otherGates(table kueueTable, verdict string) []any {
	gates := []any{gate("DisableWaitForPodsReady", true), gate("FinishOrphanedWorkloads", false)}
	for name, row := range table.FeatureGates {
		if judgement, _ := row.(map[string]any); judgement[verdict] != nil {
			kueues := utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name))
			changed := name == "PrioritizePreemptorWorkloads" || name == "VisibilityOnDemand"
			gates = append(gates, gate(name, kueues == changed))
		}
	}
	return gates
}

func gate(name string, enabled any) map[string]any {
	return map[string]any{"name": name, "enabled": enabled}
}

// onlyNoted leaves of wrong values those that are noted.
func onlyNoted(table kueueTable, wrong map[string]any) map[string]any {
	configuration := wrong["managerConfig"].(map[string]any)["configuration"].(map[string]any)
	resources := maps.Clone(configuration["resources"].(map[string]any))
	delete(resources, "quotaCheckStrategy")
	noted := map[string]any{"metrics": map[string]any{"enableClusterQueueResources": false}, "resources": resources}
	for _, name := range []string{"admissionFairSharing", "objectRetentionPolicies", "fairSharing"} {
		noted[name] = configuration[name]
	}
	return map[string]any{
		"enableVisibilityAuthReaderRoleBinding": false, "enableKueueViz": true,
		"controllerManager": map[string]any{"featureGates": otherGates(table, "note")},
		"managerConfig":     map[string]any{"configuration": noted},
	}
}

// What goes together is not refused.
func TestValuesOfKueueThatFitEachOther(t *testing.T) {
	const ours = "{name: DisableWaitForPodsReady, enabled: true}, {name: FinishOrphanedWorkloads, enabled: false}"
	noTopologies := "{name: TopologyAwareScheduling, enabled: false}"
	kueueGates(func(name string) {
		if strings.HasPrefix(name, "TAS") && utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name)) {
			noTopologies += ", {name: " + name + ", enabled: false}"
		}
	})
	rows := map[string]string{
		"cert-manager with an issuer of one's own": `{enableCertManager: true, certManager: {issuerRef: {name: mine, kind: ClusterIssuer}}}`,
		"a webhook on another port":                `{webhookService: {ports: [{port: 443, protocol: TCP, targetPort: 10443}]}, managerConfig: {configuration: {webhook: {port: 10443}}}}`,
		"no alpha gates, as by default":            `{controllerManager: {featureGates: [` + ours + `, {name: AllAlpha, enabled: false}]}}`,
		"the gate of labels of metrics, and none":  `{controllerManager: {featureGates: [` + ours + `, {name: CustomMetricLabels, enabled: true}]}, managerConfig: {configuration: {metrics: null}}}`,
		"labels of metrics, and their gate":        `{controllerManager: {featureGates: [` + ours + `, {name: CustomMetricLabels, enabled: true}]}, managerConfig: {configuration: {metrics: {customLabels: [{name: team}]}}}}`,
		"gates that go together":                   `{controllerManager: {featureGates: [` + ours + `, ` + noTopologies + `]}}`,
		"a gate of another version of Kueue":       `{controllerManager: {manager: {image: {tag: v0.20.0}}, featureGates: [` + ours + `, {name: OfTheFuture, enabled: true}]}}`,
		"metrics on another port":                  `{metricsService: {ports: [{name: https, port: 443, targetPort: 9443}]}, managerConfig: {configuration: {metrics: {bindAddress: ":9443"}}}}`,
		"no metrics":                               `{managerConfig: {configuration: {metrics: {bindAddress: "0"}}}}`,
		"what is the default":                      `{nameOverride: "", managerConfig: {configuration: {namespace: ` + namespace + `, visibilityServer: {bindPort: 8082}, leaderElection: {resourceNamespace: ` + namespace + `}}}}`,
	}
	for name, text := range rows {
		t.Run(name, func(t *testing.T) {
			in := map[string]any{}
			if err := yaml.Unmarshal([]byte(text), &in); err != nil {
				t.Fatal(err)
			}
			if _, err := renderLight(t, here(t), "mlbatch", map[string]any{"kueue": in}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Kueue's chart hands on what feature gates are called and set to, and Kueue ends at once if it cannot read them.
func TestFeatureGatesWithWhichKueueWouldNotStart(t *testing.T) {
	const tas = "TopologyAwareScheduling"
	for want, wrong := range map[string][]any{
		"must have enabled, with true or false":           {gate("ReclaimablePods", "true")},
		"ReclaimPods in kueue.controllerManager.featureG": {gate("ReclaimPods", true)},
		"is no feature gate of Kueue v0.19.2: remove it,": {gate("ReclaimPods", true)},
		"nobody has tried it with those of Kubernetes' l": {gate("WatchList", true)},
		"HierarchicalCohorts in kueue.controllerManager.": {gate("HierarchicalCohorts", false)},
		"Observability being off: set it to true, or Una": {gate("UnadmittedWorkloadsExplicitStatus", true)},
		"TASReplaceNodeOnPodTermination to false, in kue": {gate("TASFailedNodeReplacement", false)},
		"TASHandleOverlappingFlavors, TASMultiLayerTopol": {gate(tas, false)},
		"or ElasticJobsViaWorkloadSlicesWithTAS to false": {gate("ElasticJobsViaWorkloadSlices", false), gate("ElasticJobsViaWorkloadSlicesWithTAS", true)},
		"set it to true, or KueueDRAIntegrationConsumabl": {gate("KueueDRAIntegration", false), gate("KueueDRAIntegrationConsumableCapacity", true)},
	} {
		t.Run(want, func(t *testing.T) {
			gates := append([]any{gate("DisableWaitForPodsReady", true), gate("FinishOrphanedWorkloads", false)}, wrong...)
			_, err := render(t, "mlbatch", map[string]any{"kueue": map[string]any{"controllerManager": map[string]any{"featureGates": gates}}})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it is refused with %v", err)
			}
		})
	}
}
