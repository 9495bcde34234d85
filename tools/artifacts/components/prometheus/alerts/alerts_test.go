// SPDX-License-Identifier: Apache-2.0

// Package alerts tests our chart's alerting rules and dashboard with the real Prometheus, and
// against the metrics that docs/monitoring.md lists.
package alerts

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

var promQL = parser.NewParser(parser.Options{})

// rules returns the rules that the chart renders, parsed by Prometheus.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	spec, err := yaml.Marshal(rendered(t, "PrometheusRule", "appwrapper").Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, problems := rulefmt.Parse(spec, false, model.LegacyValidation, promQL, slog.New(slog.DiscardHandler))
	for _, problem := range problems {
		t.Error(problem)
	}
	if groups == nil || len(groups.Groups) != 1 {
		t.Fatal("there is no group of rules, or more than one")
	}
	return groups.Groups[0].Rules
}

// cluster has metrics of a quarter of an hour, with a sample a minute, and whether the alert's
// expression is true at the end. The alert's "for", how long it must be true, is not tested.
type cluster struct {
	series string
	alarms bool
}

var clusters = map[string]map[string]cluster{
	"AppWrapperControllerAbsent": {
		"a leader and one that stands by": {`controller_runtime_max_concurrent_reconciles{controller="appwrapper",pod="a"} 8x15`, false},
		"other controllers only":          {`controller_runtime_max_concurrent_reconciles{controller="cert-rotator"} 1x15`, true},
		"none since ten minutes":          {`controller_runtime_max_concurrent_reconciles{controller="appwrapper"} 8x5 stale`, true},
	},
	"AppWrapperNoLeader": {
		"one leads":             {"leader_election_master_status{name=\"f134c674.codeflare.dev\",pod=\"a\"} 0x15\nleader_election_master_status{name=\"f134c674.codeflare.dev\",pod=\"b\"} 1x15", false},
		"nobody leads":          {"leader_election_master_status{name=\"f134c674.codeflare.dev\",pod=\"a\"} 0x15\nleader_election_master_status{name=\"f134c674.codeflare.dev\",pod=\"b\"} 0x15", true},
		"there is no election":  {"", false},
		"Kueue has a leader":    {"leader_election_master_status{name=\"f134c674.codeflare.dev\"} 0x15\nleader_election_master_status{name=\"c1f6bfd2.kueue.x-k8s.io\"} 1x15", true},
		"another has no leader": {"leader_election_master_status{name=\"c1f6bfd2.kueue.x-k8s.io\"} 0x15", false},
	},
	"AppWrapperWebhookUnreachable": {
		"it cannot be called":            {rejections("mappwrapper.kb.io", "calling_webhook_error"), true},
		"that for changes cannot":        {rejections("mappwrapper-update.kb.io", "calling_webhook_error"), true},
		"it refuses, as it should":       {rejections("vappwrapper.kb.io", "no_error"), false},
		"that of another cannot":         {rejections("vworkload.kb.io", "calling_webhook_error"), false},
		"it was so an hour ago, not now": {`apiserver_admission_webhook_rejection_count{name="vappwrapper.kb.io",error_type="calling_webhook_error"} 9x15`, false},
	},
	"AppWrapperReconcileErrors": {
		"one of a hundred":   {reconciles("1", "100"), false},
		"one of five":        {reconciles("20", "100"), true},
		"nothing to look at": {reconciles("0", "0"), false},
	},
	"AppWrapperQueueSlow": {
		"they wait a second":      {waits("0+100x15"), false},
		"some wait half a minute": {waits("0+90x15"), true},
	},
	"AppWrapperWorkerStuck": {
		"a moment":    {`workqueue_longest_running_processor_seconds{controller="appwrapper"} 0.1x15`, false},
		"ten minutes": {`workqueue_longest_running_processor_seconds{controller="appwrapper"} 300+60x15`, true},
	},
	"AppWrapperPermissionMissing": {
		"none ever":                    {`appwrapper_creation_failures_total{reason="PermissionMissing"} 0x15`, false},
		"the first since the start":    {`appwrapper_creation_failures_total{reason="PermissionMissing"} 0x10 1x5`, true},
		"a quota, which is no mistake": {`appwrapper_creation_failures_total{reason="Forbidden"} 0x10 7x5`, false},
	},
	"AppWrapperResets": {
		"a few":                   {`appwrapper_resets_total{cause="FailedComponent"} 0x10 3x5`, false},
		"many, by two leaders":    {"appwrapper_resets_total{cause=\"FailedComponent\",pod=\"a\"} 0+1x8 stale\nappwrapper_resets_total{cause=\"FailedComponent\",pod=\"b\"} _x8 0+2x7", true},
		"some for each of causes": {"appwrapper_resets_total{cause=\"FailedComponent\"} 0x10 6x5\nappwrapper_resets_total{cause=\"CreateFailed\"} 0x10 6x5", false},
	},
	"WorkPreemptedAgain": {
		"ten jobs, each once":            {preemptions("0x5 10x10", "0x5 10x10"), false},
		"two jobs, in turn, without end": {preemptions("0+1x15", "0 1 2x14"), true},
		"one job a few times":            {preemptions("0x5 4x10", "0x5 1x10"), false},
		"twelve, by two leaders":         {preemptions("0x5 4x10", "0x5 0x10") + "\n" + strings.ReplaceAll(preemptions("0x5 4x10", "0x5 0x10"), `"a"`, `"b"`), true},
		"its queue is stopped, not work": {strings.ReplaceAll(preemptions("0+1x15", "0x15"), "Preempted", "ClusterQueueStopped"), false},
	},
	"WorkPreemptedManyTimes": {
		"a job for the sixth time":            {`mlbatch_most_preemptions{namespace="blue",pod="a"} 5x5 6x10`, true},
		"one for the fifth time":              {`mlbatch_most_preemptions{namespace="blue",pod="a"} 4x5 5x10`, false},
		"it runs since":                       {`mlbatch_most_preemptions{namespace="blue",pod="a"} 9x15`, false},
		"it has ended, and another has fewer": {`mlbatch_most_preemptions{namespace="blue",pod="a"} 9x5 6x10`, false},
		"another leader says the same":        {"mlbatch_most_preemptions{namespace=\"blue\",pod=\"a\"} 9x5 stale\nmlbatch_most_preemptions{namespace=\"blue\",pod=\"b\"} _x6 9x9", false},
		"many jobs of a team, a few each":     {`mlbatch_most_preemptions{namespace="blue",pod="a"} 0 1 2 3x13`, false},
	},
	"WorkHeldAfterPreemptions": {
		"none ever":                     {`mlbatch_preemption_pauses_total{until="PreemptorEnded"} 0x15`, false},
		"pauses that end after a time":  {`mlbatch_preemption_pauses_total{until="Time"} 0x5 9x10`, false},
		"the first since the start":     {`mlbatch_preemption_pauses_total{until="PreemptorEnded"} 0x10 1x5`, true},
		"one before the leader changed": {`mlbatch_preemption_pauses_total{until="PreemptorEnded",pod="a"} 0x5 1x4 stale`, true},
	},
	"QuotaBeyondUsable": {
		"all is well":                          {flavor("80", "80", "8", "8", "80"), false},
		"the slack makes up for it":            {flavor("80", "72", "8", "0", "80"), false},
		"more is missing than there is slack":  {flavor("80", "71", "8", "0", "80"), true},
		"the slack is lent although it is not": {flavor("80", "79", "8", "8", "80"), true},
		"without slack":                        {flavor("80", "79", "0", "0", "80"), true},
		"quota is more than all nodes have":    {flavor("80", "80", "0", "0", "88"), false},
		"another flavor has what is missing":   {flavor("80", "71", "8", "0", "80") + "\n" + strings.ReplaceAll(flavor("80", "80", "8", "8", "8"), "h100", "a100"), true},
	},
	"NodesNotCordoned": {
		"none ever":                           {`mlbatch_node_cordons_total{result="LimitReached"} 0x15`, false},
		"nodes are cordoned, below the limit": {`mlbatch_node_cordons_total{result="Cordoned"} 0x5 2x10`, false},
		"the first since the start":           {`mlbatch_node_cordons_total{result="LimitReached"} 0x10 1x5`, true},
		"one before the leader changed":       {`mlbatch_node_cordons_total{result="LimitReached",pod="a"} 0x5 1x4 stale`, true},
		"nothing may be cordoned":             {"", false},
	},
	"DeviceActivityUnanswered": {
		"there are answers":        {`mlbatch_device_activity_answered 0x5 1x10`, false},
		"there are none":           {`mlbatch_device_activity_answered 1x5 0x10`, true},
		"nobody is to be asked":    {"", false},
		"the next leader has some": {"mlbatch_device_activity_answered{pod=\"a\"} 0x5 stale\nmlbatch_device_activity_answered{pod=\"b\"} _x6 1x9", false},
	},
	"AppWrapperStuckDeleting": {
		"it is being removed": {`kube_customresource_status_conditions{crd_type="appwrapper",namespace="team",name="a",type="DeletingResources"} 1x15`, true},
		"it was removed":      {`kube_customresource_status_conditions{crd_type="appwrapper",namespace="team",name="a",type="DeletingResources"} 0x15`, false},
		"it is unhealthy":     {`kube_customresource_status_conditions{crd_type="appwrapper",namespace="team",name="a",type="Unhealthy"} 1x15`, false},
	},
}

// flavor has so much in total, usable, slack, lent by it, and quota.
func flavor(total, usable, slack, lent, quota string) string {
	var all []string
	for name, value := range map[string]string{"total": total, "usable": usable, "slack": slack, "lent": lent, "quota": quota} {
		all = append(all, "mlbatch_flavor_"+name+`{flavor="h100",resource="nvidia.com/gpu"} `+value+"x15")
	}
	return strings.Join(all, "\n")
}

// preemptions are all of a queue, and those of Workloads that had not been preempted before.
func preemptions(all, first string) string {
	const labels = `{cluster_queue="blue",reason="Preempted",pod="a"} `
	return "kueue_evicted_workloads_total" + labels + all + "\nkueue_evicted_workloads_once_total" + labels + first
}

func rejections(webhook, kind string) string {
	return `apiserver_admission_webhook_rejection_count{name="` + webhook + `",error_type="` + kind + `"} 0+1x15`
}

func reconciles(errors, all string) string {
	return `controller_runtime_reconcile_errors_total{controller="appwrapper"} 0+` + errors + "x15\n" +
		`controller_runtime_reconcile_total{controller="appwrapper",result="success"} 0+` + all + "x15"
}

// waits is a histogram of the waits of a hundred AppWrappers a minute. Of those, short wait at
// most a second, and the others a hundred seconds.
func waits(short string) string {
	const bucket = `workqueue_queue_duration_seconds_bucket{controller="appwrapper",le="`
	return bucket + `1"} ` + short + "\n" + bucket + `10"} ` + short + "\n" + bucket + `100"} 0+100x15` + "\n" + bucket + `+Inf"} 0+100x15`
}

func TestWhenAlertsAlarm(t *testing.T) {
	var names []string
	for _, rule := range rules(t) {
		names = append(names, rule.Alert)
		for sentence, c := range clusters[rule.Alert] {
			t.Run(rule.Alert+"/"+sentence, func(t *testing.T) {
				if got := holds(t, rule.Expr, c.series); got != c.alarms {
					t.Errorf("it alarms: %t, want %t", got, c.alarms)
				}
			})
		}
	}
	for name, row := range clusters {
		if !slices.Contains(names, name) {
			t.Errorf("there is no alert %s", name)
		}
		var alarms, calm bool
		for _, c := range row {
			alarms, calm = alarms || c.alarms, calm || !c.alarms
		}
		if !alarms || !calm {
			t.Errorf("%s is not seen both to alarm and to be silent", name)
		}
	}
	for _, name := range names {
		if clusters[name] == nil {
			t.Errorf("nobody knows when %s alarms", name)
		}
	}
}

func holds(t *testing.T, expression, series string) bool {
	t.Helper()
	return len(evaluated(t, expression, series)) > 0
}

// evaluated is what Prometheus answers after a quarter of an hour.
func evaluated(t *testing.T, expression, series string) promql.Vector {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(series, "\n", "\n  "))
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 10000)
	query, err := engine.NewInstantQuery(context.Background(), storage, nil, expression, time.Unix(0, 0).Add(15*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	found, err := query.Exec(context.Background()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return found
}
