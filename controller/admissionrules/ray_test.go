// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

// ValidateRayClusterSpec and ValidateRayJobSpec of KubeRay 1.6 refuse the same, and accept the same.
func TestARayClusterOfWhichKubeRayOnlyComplainsIsRefused(t *testing.T) {
	cluster := func(spec, head, container, worker string) string {
		return "{" + spec + "headGroupSpec: {" + head + "template: {spec: {containers: [{name: h, image: i, " + container + "}]}}}, " +
			"workerGroupSpecs: [{groupName: g, replicas: 1, " + worker + "template: " + podTemplate + "}]}"
	}
	variable := func(name, value string) string { return "env: [{name: " + name + ", value: '" + value + "'}]" }
	const env = "headGroupSpec.template.spec.containers[0].env"
	redis := "gcsFaultToleranceOptions: {redisAddress: 'r:6379'}, "
	for sentence, row := range map[string]struct {
		cluster  string
		at, says string // nothing is refused if they are empty
	}{
		"nothing special":                          {cluster("", "rayStartParams: {}, ", "", "minReplicas: 1, maxReplicas: 1, "), "", ""},
		"the variable of an autoscaler":            {cluster("", "", variable("RAY_enable_autoscaler_v2", "1"), ""), env, "the cluster has no autoscaler"},
		"the same in words":                        {cluster("", "", variable("RAY_enable_autoscaler_v2", "true"), ""), env, "the cluster has no autoscaler"},
		"the variable of no autoscaler":            {cluster("", "", variable("RAY_enable_autoscaler_v2", "0"), ""), "", ""},
		"less than no replicas":                    {cluster("", "", "", "minReplicas: -1, "), "workerGroupSpecs[0].minReplicas", "must not be negative"},
		"a minimum above the maximum":              {cluster("", "", "", "minReplicas: 1, maxReplicas: 0, "), "workerGroupSpecs[0].minReplicas", "must be at most maxReplicas, 0"},
		"an idle worker without an autoscaler":     {cluster("", "", "", "idleTimeoutSeconds: 60, "), "workerGroupSpecs[0].idleTimeoutSeconds", "there is no autoscaler"},
		"an idle worker of a version":              {cluster("autoscalerOptions: {version: v2}, ", "", "", "idleTimeoutSeconds: 60, "), "", ""},
		"idle for less than no time":               {cluster("autoscalerOptions: {idleTimeoutSeconds: -1}, ", "", "", ""), "autoscalerOptions.idleTimeoutSeconds", "must be at least 0"},
		"tokens without a version":                 {cluster("authOptions: {mode: token}, ", "", "", ""), "rayVersion", "at least 2.52.0"},
		"tokens of an old version":                 {cluster("rayVersion: 2.51.1, authOptions: {mode: token}, ", "", "", ""), "rayVersion", "at least 2.52.0"},
		"tokens of a version":                      {cluster("rayVersion: 2.52.0, authOptions: {mode: token}, ", "", "", ""), "", ""},
		"no tokens":                                {cluster("authOptions: {mode: disabled}, ", "", "", ""), "", ""},
		"labels as a parameter":                    {cluster("", "rayStartParams: {labels: a=b}, ", "", ""), "headGroupSpec.rayStartParams.labels", "labels of the group"},
		"labels of the group":                      {cluster("", "labels: {a: b}, ", "", ""), "", ""},
		"labels with a space":                      {cluster("", "", "", "labels: {a: b c}, "), "workerGroupSpecs[0].labels", "a valid label must"},
		"labels whose key has one":                 {cluster("", "", "", "labels: {a b: c}, "), "workerGroupSpecs[0].labels", "name part must"},
		"cores twice":                              {cluster("", "", "", "rayStartParams: {num-cpus: '1'}, resources: {CPU: '1'}, "), "workerGroupSpecs[0].rayStartParams.num-cpus", "resources, too"},
		"cores once":                               {cluster("", "rayStartParams: {num-cpus: '0'}, ", "", "resources: {CPU: '1'}, "), "", ""},
		"a Redis":                                  {cluster(redis, "", "", ""), "", ""},
		"a password beside it":                     {cluster(redis, "rayStartParams: {redis-password: x}, ", "", ""), "headGroupSpec.rayStartParams.redis-password", "gcsFaultToleranceOptions.redisPassword"},
		"its password in a variable":               {cluster(redis, "", variable("REDIS_PASSWORD", "x"), ""), env, "gcsFaultToleranceOptions.redisPassword"},
		"a password of none":                       {cluster("", "rayStartParams: {redis-password: x}, ", variable("REDIS_PASSWORD", "x"), ""), "", ""},
		"its address in a variable":                {cluster(redis, "", variable("RAY_REDIS_ADDRESS", "r"), ""), env, "gcsFaultToleranceOptions.redisAddress"},
		"the address of none":                      {cluster("", "", variable("RAY_REDIS_ADDRESS", "r"), ""), env, "gcsFaultToleranceOptions.redisAddress"},
		"a user of none":                           {cluster("", "rayStartParams: {redis-username: u}, ", "", ""), "headGroupSpec.rayStartParams.redis-username", "gcsFaultToleranceOptions.redisUsername"},
		"tokens of Kubernetes without others":      {cluster("rayVersion: 2.55.0, authOptions: {enableK8sTokenAuth: true}, ", "", "", ""), "authOptions.enableK8sTokenAuth", "needs authOptions.mode: token"},
		"tokens of Kubernetes with a Secret":       {cluster("rayVersion: 2.55.0, authOptions: {mode: token, enableK8sTokenAuth: true, secretName: s}, ", "", "", ""), "authOptions.secretName", "needs no Secret"},
		"tokens of Kubernetes of an older version": {cluster("rayVersion: 2.54.0, authOptions: {mode: token, enableK8sTokenAuth: true}, ", "", "", ""), "rayVersion", "at least 2.55.0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			for kind, at := range map[string]string{aCluster: "spec", aRayJob: "spec.rayClusterSpec", "apiVersion: ray.io/v1, kind: RayService": "spec.rayClusterConfig"} {
				if strings.Contains(sentence, "Kubernetes") && kind != aCluster {
					continue
				}
				spec := row.cluster
				if _, field, inside := strings.Cut(at, "."); inside {
					spec = "{" + field + ": " + spec + "}"
				}
				wantRefusal(t, appWrapper(t, component(named(kind, "r", spec))), at+"."+row.at, row.says)
			}
		})
	}
}

func TestARayJobOfWhichKubeRayOnlyComplainsIsRefused(t *testing.T) {
	job := func(more string) string { return named(aRayJob, "r", "{"+more+", rayClusterSpec: "+aHead+"}") }
	for template, row := range map[string]struct{ at, says string }{
		job("backoffLimit: -1"):                                        {"spec.backoffLimit", "must be at least 0"},
		job("backoffLimit: 1"):                                         {},
		job("activeDeadlineSeconds: 0"):                                {"spec.activeDeadlineSeconds", "must be at least 1"},
		job("submissionMode: InteractiveMode, backoffLimit: 1"):        {"spec.backoffLimit", "does not try a job in InteractiveMode again"},
		job("submissionMode: SidecarMode, submitterConfig: {}"):        {"spec.submitterConfig", "in SidecarMode"},
		job("submissionMode: SidecarMode, submitterPodTemplate: null"): {},
		strings.Replace(job("x: 1"), "{headGroupSpec", "{rayVersion: 2.55.0, authOptions: {mode: token, enableK8sTokenAuth: true}, headGroupSpec", 1): {"spec.rayClusterSpec.authOptions.enableK8sTokenAuth", "for a RayCluster only"},
	} {
		t.Run(template, func(t *testing.T) {
			wantRefusal(t, appWrapper(t, component(template)), row.at, row.says)
		})
	}
	group := "{groupName: g, replicas: 1, template: " + podTemplate + "}"
	for template, row := range map[string]struct{ at, says string }{
		named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: ["+group+", "+group+"]}"):                                                            {"spec.workerGroupSpecs[1].groupName", "the name of another group"},
		named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: ["+strings.Replace(group, "groupName: g", "groupName: gpu_8x", 1)+"]}"):              {"spec.workerGroupSpecs[0].groupName", "use letters, digits and -"},
		named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: ["+strings.Replace(group, "groupName: g", "groupName: GPU-8x", 1)+"]}"):              {},
		named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: ["+strings.Replace(group, "groupName: g", "groupName: g-", 1)+"]}"):                  {"spec.workerGroupSpecs[0].groupName", "a valid label must"},
		named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: ["+group+", "+strings.Replace(group, "groupName: g", "groupName: h", 1)+"]}"):        {},
		named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: ["+strings.Replace(group, "replicas: 1", "maxReplicas: 1, replicas: 10001", 1)+"]}"): {"spec.workerGroupSpecs[0].replicas", "must be at most 10000"},
		named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: ["+strings.Replace(group, "replicas: 1", "replicas: 1, numOfHosts: 0", 1)+"]}"):      {"spec.workerGroupSpecs[0].numOfHosts", "must be at least 1"},
		named(aCluster, "r", "{upgradeStrategy: {type: Recreate}, headGroupSpec: {template: "+podTemplate+"}}"):                                                                   {},
		named(aRayJob, "r", "{rayClusterSpec: {upgradeStrategy: {type: Recreate}, headGroupSpec: {template: "+podTemplate+"}}}"):                                                  {"spec.rayClusterSpec.upgradeStrategy.type", "for a RayCluster only"},
	} {
		wantRefusal(t, appWrapper(t, component(template)), row.at, row.says)
	}
	annotated := "{" + aCluster + ", metadata: {name: r, annotations: {ray.io/ft-enabled: 'false'}}, spec: {gcsFaultToleranceOptions: {redisAddress: 'r:6379'}, headGroupSpec: {template: " + podTemplate + "}}}"
	wantRefusal(t, appWrapper(t, component(annotated)), "metadata.annotations", "gcsFaultToleranceOptions says the same")
}

func TestNullCountsAsAbsent(t *testing.T) {
	for sentence, row := range map[string]struct {
		template string
		podSets  int
	}{
		"leaders of a LeaderWorkerSet": {named(groups, "g", "{replicas: null, leaderWorkerTemplate: {size: 2, leaderTemplate: null, workerTemplate: "+podTemplate+"}}"), 1},
		"a role of a PyTorchJob":       {named(aPyTorchJob, "p", "{pytorchReplicaSpecs: {Master: {replicas: null, template: "+trainer+"}, Worker: null}}"), 1},
		"the template of a role":       {named(aPyTorchJob, "p", "{pytorchReplicaSpecs: {Master: {template: "+trainer+"}, Worker: {template: null}}}"), 1},
		"numbers of a Ray group":       {named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: [{replicas: 1, minReplicas: null, maxReplicas: null, idleTimeoutSeconds: null, template: "+podTemplate+"}]}"), 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			aw := appWrapper(t, component(row.template))
			wantRefusal(t, aw, "", "")
			if podSets, err := PodSets(nil, Decode(aw).Templates[0]); err != nil || len(podSets) != row.podSets {
				t.Errorf("%d pod sets, %v", len(podSets), err)
			}
		})
	}
}
