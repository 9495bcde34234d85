// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestParseReadsOverTheDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want func(*Config)
	}{
		"an empty file means the defaults":         {"", func(*Config) {}},
		"a null section means its defaults":        {"appwrapper: null\ncontrollerManager: null\ncertManagement: null", func(*Config) {}},
		"a null subsection means its defaults":     {"appwrapper: {faultTolerance: null, autopilot: null}", func(*Config) {}},
		"a null number means its default":          {"appwrapper: {podSetLimit: null}\nconcurrency: null", func(*Config) {}},
		"a null duration means its default":        {"appwrapper: {faultTolerance: {resetPause: null}}", func(*Config) {}},
		"a null list means its default":            {"appwrapper: {kueue: {serviceAccounts: null}}", func(*Config) {}},
		"a null map means its default":             {"appwrapper: {autopilot: {resourceTaints: null}}", func(*Config) {}},
		"a duration may be written for people":     {"appwrapper: {faultTolerance: {resetPause: 1m30s}}", func(*Config) {}},
		"a duration may be a count of nanoseconds": {"appwrapper: {faultTolerance: {resetPause: 90000000000}}", func(*Config) {}},
		"a setting changes only itself": {"appwrapper: {faultTolerance: {warmupGracePeriod: 10m}}", func(c *Config) {
			c.AppWrapper.FaultTolerance.WarmupGracePeriod = Duration{10 * time.Minute}
		}},
		"a switch can be turned off": {"appwrapper: {userRBACAdmissionCheck: false}\nwebhooksEnabled: false", func(c *Config) {
			c.AppWrapper.UserRBACAdmissionCheck = false
			c.WebhooksEnabled = false
		}},
		"additions of ours are read": {"appwrapper: {podSetLimit: 18}\nconcurrency: 4\nclientConnection: {qps: 50, burst: 100}", func(c *Config) {
			c.AppWrapper.PodSetLimit = 18
			c.Concurrency = 4
			c.ClientConnection = ClientConnection{QPS: 50, Burst: 100}
		}},
		"a kind of the core group is listed with an empty group": {
			`appwrapper: {extraKinds: [{group: "", version: v1, kind: ReplicationController, resource: replicationcontrollers}]}`,
			func(c *Config) {
				c.AppWrapper.ExtraKinds = []ExtraKind{{Group: new(string), Version: "v1", Kind: "ReplicationController", Resource: "replicationcontrollers"}}
			},
		},
		"a resource's taints replace the default ones": {
			"appwrapper: {autopilot: {resourceTaints: {nvidia.com/gpu: [{key: a/b, value: ERR, effect: NoExecute}]}}}",
			func(c *Config) {
				c.AppWrapper.Autopilot.ResourceTaints = map[string][]corev1.Taint{"nvidia.com/gpu": {{Key: "a/b", Value: "ERR", Effect: "NoExecute"}}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := Default()
			tc.want(&want)
			got, notes, err := Parse([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			if len(notes) > 0 {
				t.Errorf("unexpected notes: %q", notes)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(AppWrapper{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAuthorsAreAskedWhatTheyMayCreateByDefault(t *testing.T) {
	if !Default().AppWrapper.UserRBACAdmissionCheck {
		t.Error("by default, users' permissions to create components are not checked")
	}
}

// The API server limits requests by itself. docs/evidence/performance.md has the goals.
func TestTheLimitOfRequestsIsNotWhatKeepsAnybodyWaiting(t *testing.T) {
	const ofALifecycle, ofAStart = 12, 7 // requests
	limit := Default().ClientConnection
	if got := float64(limit.QPS) / ofALifecycle; got < 75 {
		t.Errorf("it allows %.0f lifecycles a second", got)
	}
	if got := (300*ofAStart - float64(limit.Burst)) / float64(limit.QPS); got > 2 {
		t.Errorf("if 300 start at once, the last one waits for %.0f s", got)
	}
}

func TestParseNamesTheFieldThatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct{ file, field string }{
		"an unknown key at the top":                  {"webhookEnabled: true", "webhookEnabled"},
		"an unknown key in a section":                {"appwrapper: {faultTolerance: {retryLimits: 1}}", "appwrapper.faultTolerance.retryLimits"},
		"a key in another case":                      {"appwrapper: {schedulername: x}", "appwrapper.schedulername"},
		"an unknown key of a taint":                  {"appwrapper: {autopilot: {resourceTaints: {gpu: [{k: v}]}}}", "appwrapper.autopilot.resourceTaints.gpu[0].k"},
		"a slack queue that cannot exist":            {"appwrapper: {slackQueueName: Slack_Queue}", "appwrapper.slackQueueName"},
		"a slack queue without a name":               {"appwrapper: {slackQueueNames: [a, '']}", "appwrapper.slackQueueNames[1]"},
		"a slack queue in a list":                    {"appwrapper: {slackQueueNames: [a/b]}", "appwrapper.slackQueueNames[0]"},
		"a slack queue that is a number":             {"appwrapper: {slackQueueName: 1}", "appwrapper.slackQueueName"},
		"a key given twice":                          {"concurrency: 1\nconcurrency: 2", "concurrency"},
		"a duration with days":                       {"appwrapper: {faultTolerance: {resetPause: 7d}}", "appwrapper.faultTolerance.resetPause"},
		"a duration with a fraction of a nanosecond": {"appwrapper: {faultTolerance: {resetPause: 0.5}}", "appwrapper.faultTolerance.resetPause"},
		"a string for a number":                      {"appwrapper: {faultTolerance: {retryLimit: three}}", "appwrapper.faultTolerance.retryLimit"},
		"a list for a section":                       {"appwrapper: {faultTolerance: []}", "appwrapper.faultTolerance"},
		"a string for the file":                      {"hello", "the file"},
		"a warm-up beyond the ceiling":               {"appwrapper: {faultTolerance: {warmupGracePeriod: 25h}}", "appwrapper.faultTolerance.warmupGracePeriod"},
		"an admission grace beyond the ceiling":      {"appwrapper: {faultTolerance: {admissionGracePeriod: 25h}}", "appwrapper.faultTolerance.admissionGracePeriod"},
		"a failure grace beyond the ceiling":         {"appwrapper: {faultTolerance: {failureGracePeriod: 25h}}", "appwrapper.faultTolerance.failureGracePeriod"},
		"a pause beyond the ceiling":                 {"appwrapper: {faultTolerance: {resetPause: 25h}}", "appwrapper.faultTolerance.resetPause"},
		"a deletion grace beyond the ceiling":        {"appwrapper: {faultTolerance: {deletionGracePeriod: 25h}}", "appwrapper.faultTolerance.deletionGracePeriod"},
		"an admission grace longer than the warm-up": {"appwrapper: {faultTolerance: {admissionGracePeriod: 6m}}", "appwrapper.faultTolerance.admissionGracePeriod"},
		"a negative grace":                           {"appwrapper: {faultTolerance: {failureGracePeriod: -1s}}", "appwrapper.faultTolerance.failureGracePeriod"},
		"a success TTL of zero":                      {"appwrapper: {faultTolerance: {successTTLCeiling: 0}}", "appwrapper.faultTolerance.successTTLCeiling"},
		"a negative retry limit":                     {"appwrapper: {faultTolerance: {retryLimit: -1}}", "appwrapper.faultTolerance.retryLimit"},
		"more retries than the ceiling":              {"appwrapper: {faultTolerance: {retryLimit: 101}}", "appwrapper.faultTolerance.retryLimit"},
		"a negative ceiling of retries":              {"appwrapper: {faultTolerance: {retryLimit: 0, retryLimitCeiling: -1}}", "appwrapper.faultTolerance.retryLimitCeiling"},
		"a component limit of zero":                  {"appwrapper: {componentLimit: 0}", "appwrapper.componentLimit"},
		"a pod-set limit of zero":                    {"appwrapper: {podSetLimit: 0}", "appwrapper.podSetLimit"},
		"a preemption before the first":              {"appwrapper: {preemptionPause: {after: -1}}", "appwrapper.preemptionPause.after"},
		"a pause that nobody notices":                {"appwrapper: {preemptionPause: {first: 10ms}}", "appwrapper.preemptionPause.first"},
		"a pause that gets shorter":                  {"appwrapper: {preemptionPause: {first: 2h}}", "appwrapper.preemptionPause.longest"},
		"a pause longer than a week":                 {"appwrapper: {preemptionPause: {longest: 200h}}", "appwrapper.preemptionPause.longest"},
		"no time for an answer":                      {"appwrapper: {deviceActivity: {timeout: 0s}}", "appwrapper.deviceActivity.timeout"},
		"an answer that takes too long":              {"appwrapper: {deviceActivity: {timeout: 1m}}", "appwrapper.deviceActivity.timeout"},
		"a query for nobody":                         {"appwrapper: {deviceActivity: {query: 'x{namespace=\"$namespace\",pod=~\"$pods\"}'}}", "appwrapper.deviceActivity.prometheusURL"},
		"an address that is none":                    {"appwrapper: {deviceActivity: {prometheusURL: 'prometheus:9090', query: '$namespace $pods'}}", "appwrapper.deviceActivity.prometheusURL"},
		"a Prometheus without a query":               {"appwrapper: {deviceActivity: {prometheusURL: 'http://p'}}", "appwrapper.deviceActivity.query"},
		"a token for everybody on the way":           {"appwrapper: {deviceActivity: {prometheusURL: 'http://p', query: '$namespace $pods', tokenFile: /t}}", "appwrapper.deviceActivity.tokenFile"},
		"certificates for nobody":                    {"appwrapper: {deviceActivity: {prometheusURL: 'http://p', query: '$namespace $pods', caFile: /c}}", "appwrapper.deviceActivity.caFile"},
		"a token somewhere":                          {"appwrapper: {deviceActivity: {prometheusURL: 'https://p', query: '$namespace $pods', tokenFile: t}}", "appwrapper.deviceActivity.tokenFile"},
		"a token without an address":                 {"appwrapper: {deviceActivity: {tokenFile: /t}}", "appwrapper.deviceActivity.prometheusURL"},
		"certificates without an address":            {"appwrapper: {deviceActivity: {caFile: /c}}", "appwrapper.deviceActivity.prometheusURL"},
		"a query about every team":                   {"appwrapper: {deviceActivity: {prometheusURL: 'http://p', query: 'x{pod=~\"$pods\"}'}}", "appwrapper.deviceActivity.query"},
		"a query about all pods":                     {"appwrapper: {deviceActivity: {prometheusURL: 'http://p', query: 'x{namespace=\"$namespace\"}'}}", "appwrapper.deviceActivity.query"},
		"a queue that cannot exist":                  {"appwrapper: {defaultQueueName: My Queue}", "appwrapper.defaultQueueName"},
		"a service account that cannot exist":        {"appwrapper: {kueue: {serviceAccounts: [ok, a/b/c]}}", "appwrapper.kueue.serviceAccounts[1]"},
		"a selector that selects nothing":            {"appwrapper: {kueue: {managedJobsNamespaceSelector: {matchExpressions: [{key: a, operator: is}]}}}", "appwrapper.kueue.managedJobsNamespaceSelector.matchExpressions[0].operator"},
		"a queue that fits no label":                 {"appwrapper: {defaultQueueName: " + strings.Repeat("q", 64) + "}", "appwrapper.defaultQueueName"},
		"an address without a port":                  {"controllerManager: {metrics: {bindAddress: localhost}}", "controllerManager.metrics.bindAddress"},
		"a port without a colon":                     {"controllerManager: {health: {bindAddress: '8081'}}", "controllerManager.health.bindAddress"},
		"a Lease that is lost at once":               {"controllerManager: {leaseDuration: 4s}", "controllerManager.leaseDuration"},
		"a Lease of half a second":                   {"controllerManager: {leaseDuration: 5500ms}", "controllerManager.leaseDuration"},
		"a Lease that nobody believes":               {"controllerManager: {leaseDuration: 6m}", "controllerManager.leaseDuration"},
		"a weight out of range":                      {"appwrapper: {autopilot: {preferNoScheduleWeight: 101}}", "appwrapper.autopilot.preferNoScheduleWeight"},
		"fewer migrations than none":                 {"appwrapper: {autopilot: {migrationLimit: -1}}", "appwrapper.autopilot.migrationLimit"},
		"a taint without a key":                      {"appwrapper: {autopilot: {resourceTaints: {gpu: [{effect: NoSchedule}]}}}", "appwrapper.autopilot.resourceTaints[gpu][0].key"},
		"a taint with an unknown effect":             {"appwrapper: {autopilot: {resourceTaints: {gpu: [{key: k, effect: Never}]}}}", "appwrapper.autopilot.resourceTaints[gpu][0].effect"},
		"a taint that is no label":                   {"appwrapper: {autopilot: {resourceTaints: {gpu: [{key: a b, effect: NoSchedule}]}}}", "appwrapper.autopilot.resourceTaints[gpu][0].key"},
		"a taint with a value that no label has":     {"appwrapper: {autopilot: {resourceTaints: {gpu: [{key: k, value: a b, effect: NoSchedule}]}}}", "appwrapper.autopilot.resourceTaints[gpu][0].value"},
		"rules about nodes that nobody watches":      {"appwrapper: {autopilot: {monitorNodes: false}, nodeHealth: {devicesMissing: [{resources: [a/b], effect: NoExecute}]}}", "appwrapper.nodeHealth: Forbidden"},
		"no effect of a rule":                        {"appwrapper: {nodeHealth: {devicesMissing: [{resources: [a/b]}]}}", "appwrapper.nodeHealth.devicesMissing[0].effect"},
		"an unknown effect of a rule":                {"appwrapper: {nodeHealth: {devicesMissing: [{resources: [a/b], effect: Never}]}}", "appwrapper.nodeHealth.devicesMissing[0].effect"},
		"a condition that keeps pods away":           {"appwrapper: {nodeHealth: {conditions: [{type: T, status: 'True', resources: [a/b], effect: NoSchedule}]}}", "appwrapper.nodeHealth.conditions[0].effect: Invalid value: \"NoSchedule\": the scheduler does not see conditions"},
		"a taint that keeps pods away":               {"appwrapper: {nodeHealth: {taints: [{key: k, resources: [a/b], effect: NoSchedule}]}}", "the scheduler itself keeps pods away from nodes with a taint"},
		"devices that keep pods away":                {"appwrapper: {nodeHealth: {devicesMissing: [{resources: [a/b], effect: PreferNoSchedule}]}}", "the scheduler itself gives no pod a missing device"},
		"a rule about no resource":                   {"appwrapper: {nodeHealth: {conditions: [{type: T, status: 'True', effect: NoExecute}]}}", "appwrapper.nodeHealth.conditions[0].resources: Required value"},
		"a rule about everything and more":           {"appwrapper: {nodeHealth: {conditions: [{type: T, status: 'True', resources: ['*', a/b], effect: NoExecute}]}}", "appwrapper.nodeHealth.conditions[0].resources[0]"},
		"a rule about what is no resource":           {"appwrapper: {nodeHealth: {conditions: [{type: T, status: 'True', resources: [a b], effect: NoExecute}]}}", "appwrapper.nodeHealth.conditions[0].resources[0]"},
		"a condition without a type":                 {"appwrapper: {nodeHealth: {conditions: [{status: 'True', resources: [a/b], effect: NoExecute}]}}", "appwrapper.nodeHealth.conditions[0].type"},
		"a condition without a status":               {"appwrapper: {nodeHealth: {conditions: [{type: T, resources: [a/b], effect: NoExecute}]}}", "appwrapper.nodeHealth.conditions[0].status"},
		"a rule without a taint":                     {"appwrapper: {nodeHealth: {taints: [{resources: [a/b], effect: NoExecute}]}}", "appwrapper.nodeHealth.taints[0].key"},
		"a key that no taint has":                    {"appwrapper: {nodeHealth: {taints: [{key: a b, resources: [a/b], effect: NoExecute}]}}", "appwrapper.nodeHealth.taints[0].key"},
		"a value that no taint has":                  {"appwrapper: {nodeHealth: {taints: [{key: k, value: a b, resources: [a/b], effect: NoExecute}]}}", "appwrapper.nodeHealth.taints[0].value"},
		"an effect that no taint has":                {"appwrapper: {nodeHealth: {taints: [{key: k, taintEffect: Never, resources: [a/b], effect: NoExecute}]}}", "appwrapper.nodeHealth.taints[0].taintEffect"},
		"devices that are none":                      {"appwrapper: {nodeHealth: {devicesMissing: [{resources: [cpu], effect: NoExecute}]}}", "appwrapper.nodeHealth.devicesMissing[0].resources[0]"},
		"a grace before it begins":                   {"appwrapper: {nodeHealth: {notReady: {gracePeriod: -1s}}}", "appwrapper.nodeHealth.notReady.gracePeriod"},
		"fewer nodes than none":                      {"appwrapper: {nodeHealth: {avoid: {nodes: -1}}}", "appwrapper.nodeHealth.avoid.nodes"},
		"more nodes than a pod should name":          {"appwrapper: {nodeHealth: {avoid: {nodes: 101}}}", "appwrapper.nodeHealth.avoid.nodes"},
		"a suspicion of everybody":                   {"appwrapper: {nodeHealth: {avoid: {suspectAfter: 1}}}", "appwrapper.nodeHealth.avoid.suspectAfter"},
		"a memory that is over":                      {"appwrapper: {nodeHealth: {avoid: {period: -1s}}}", "appwrapper.nodeHealth.avoid.period"},
		"fewer cordoned nodes than none":             {"appwrapper: {nodeHealth: {cordon: {nodes: -1}}}", "appwrapper.nodeHealth.cordon.nodes"},
		"a cordon at one team's wish":                {"appwrapper: {nodeHealth: {cordon: {teams: 1}}}", "appwrapper.nodeHealth.cordon.teams"},
		"cordons of nodes that nobody watches":       {"appwrapper: {autopilot: {monitorNodes: false}, nodeHealth: {cordon: {nodes: 1}}}", "appwrapper.nodeHealth.cordon: Forbidden"},
		"cordons though no node is suspect":          {"appwrapper: {nodeHealth: {avoid: {suspectAfter: 0}, cordon: {nodes: 1}}}", "appwrapper.nodeHealth.cordon: Forbidden"},
		"capacity of nodes that nobody watches":      {"appwrapper: {autopilot: {monitorNodes: false}, nodeHealth: {capacityProviders: [a]}}", "appwrapper.nodeHealth.capacityProviders: Forbidden"},
		"no name of a capacity provider":             {"appwrapper: {nodeHealth: {capacityProviders: [a, A_b]}}", "appwrapper.nodeHealth.capacityProviders[1]"},
		"cordons though no node is avoided":          {"appwrapper: {nodeHealth: {avoid: {nodes: 0}, cordon: {nodes: 1}}}", "appwrapper.nodeHealth.cordon: Forbidden"},
		"no workers":                                 {"concurrency: 0", "concurrency"},
		"no requests":                                {"clientConnection: {qps: 0}", "clientConnection.qps"},
		"no burst":                                   {"clientConnection: {burst: 0}", "clientConnection.burst"},
		"nobody who acts for Kueue":                  {"appwrapper: {kueue: {serviceAccounts: []}}", "appwrapper.kueue.serviceAccounts: Required value"},
		"webhooks without a Secret":                  {"certManagement: {webhookSecretName: ''}", "certManagement.webhookSecretName"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse([]byte(tc.file))
			if err == nil {
				t.Fatal("the file was accepted")
			}
			if !strings.Contains(err.Error(), tc.field) {
				t.Errorf("the message does not name %s: %v", tc.field, err)
			}
		})
	}
}

func TestParseNamesTheKeyThatWasMeant(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"a plural":            {"appwrapper: {faultTolerance: {retryLimits: 1}}", "unknown key appwrapper.faultTolerance.retryLimits: did you mean appwrapper.faultTolerance.retryLimit?"},
		"another case":        {"appwrapper: {schedulername: x}", "did you mean appwrapper.schedulerName?"},
		"another section":     {"faultTolerance: {}", "did you mean appwrapper.faultTolerance?"},
		"one of two sections": {"controllerManager: {metrics: {bindAdress: x}}", "did you mean controllerManager.metrics.bindAddress?"},
		"the other of them":   {"controllerManager: {health: {bindAdress: x}}", "did you mean controllerManager.health.bindAddress?"},
		"a promoted key":      {"appwrapper: {nodeHealth: {taints: [{efect: NoExecute}]}}", "did you mean appwrapper.nodeHealth.taints[].effect?"},
		"inside a list":       {"appwrapper: {autopilot: {resourceTaints: {gpu: [{keys: v}]}}}", "did you mean appwrapper.autopilot.resourceTaints.*[].key?"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Parse([]byte(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q in: %v", tc.want, err)
			}
		})
	}
}

func TestParseNamesAllUnknownKeys(t *testing.T) {
	_, _, err := Parse([]byte("concurency: 1\nwebhookEnabled: true"))
	want := "unknown key concurency: did you mean concurrency?\nunknown key webhookEnabled: did you mean webhooksEnabled?"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestParseAcceptsLegacyKeysWithANoteEach(t *testing.T) {
	for name, tc := range map[string]struct{ file, key string }{
		"the switch of Kueue integrations": {"appwrapper: {enableKueueIntegrations: true}", "appwrapper.enableKueueIntegrations"},
		"the job reconciler":               {"appwrapper: {kueueJobReconciller: {manageJobsWithoutQueueName: true}}", "appwrapper.kueueJobReconciller"},
		"secure serving":                   {"controllerManager: {metrics: {secureServing: true}}", "controllerManager.metrics.secureServing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, notes, err := Parse([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			if len(notes) != 1 || !strings.HasPrefix(notes[0], tc.key+" ") {
				t.Errorf("want one note about %s, got %q", tc.key, notes)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing file is not named: %v", err)
	}
	if err := os.WriteFile(path, []byte("concurrency: 0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a bad file is not named: %v", err)
	}
}

func TestOwnNamespaceComesFromTheEnvironmentFirst(t *testing.T) {
	t.Setenv("NAMESPACE", "mlbatch-system")
	if got, err := OwnNamespace(); err != nil || got != "mlbatch-system" {
		t.Errorf("got %q, %v", got, err)
	}
}
