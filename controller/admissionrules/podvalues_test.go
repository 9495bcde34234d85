// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

// The API server of Kubernetes 1.36 says the same of these pods, when the operator creates them.
func TestAPodThatAnOperatorCannotCreateIsRefused(t *testing.T) {
	const c = "containers: [{name: pytorch, image: i}]"
	container := func(more string) string { return "containers: [{name: pytorch, image: i, " + more + "}]" }
	variable := func(source string) string { return container("env: [{name: A, valueFrom: " + source + "}]") }
	node := func(expression string) string {
		return c + ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [" + expression + "]}]}}}"
	}
	const term = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
	anti := func(term string) string {
		return c + ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + term + "]}}"
	}
	for sentence, row := range map[string]struct {
		spec     string
		at, says string // nothing is refused if they are empty
	}{
		"a GPU without a limit":            {container("resources: {requests: {nvidia.com/gpu: 1}}"), "containers[0].resources.limits[nvidia.com/gpu]", "must be the request, 1"},
		"a GPU with one":                   {container("resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}"), "", ""},
		"a GPU with a limit alone":         {container("resources: {limits: {nvidia.com/gpu: 1}}"), "", ""},
		"memory without a limit":           {container("resources: {requests: {memory: 1Gi, hugepages-2Mi: 4Mi}}"), "", ""},
		"a device without a domain":        {container("resources: {limits: {gpu: 1}}"), "containers[0].resources.limits[gpu]", "devices have a domain"},
		"no image":                         {"containers: [{name: pytorch}]", "containers[0].image", "which image"},
		"a pull policy with a typo":        {container("imagePullPolicy: IfNotPreset"), "containers[0].imagePullPolicy", `supported values: "Always"`},
		"a pull policy":                    {container("imagePullPolicy: Never"), "", ""},
		"a port out of range":              {container("ports: [{containerPort: 99999}]"), "containers[0].ports[0].containerPort", "between 1 and 65535"},
		"a port with capital letters":      {container("ports: [{containerPort: 80, name: HTTP}]"), "containers[0].ports[0].name", "must contain only alpha-numeric"},
		"a port of an unknown protocol":    {container("ports: [{containerPort: 80, protocol: tcp}]"), "containers[0].ports[0].protocol", `"TCP"`},
		"a port":                           {container("ports: [{containerPort: 80, name: http, hostPort: 0}]"), "", ""},
		"a probe of nothing":               {container("livenessProbe: {periodSeconds: 3}"), "containers[0].livenessProbe", "must have one handler, such as exec or httpGet, and has 0"},
		"a probe of two":                   {container("readinessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}"), "containers[0].readinessProbe", "and has 2"},
		"a probe of no command":            {container("startupProbe: {exec: {}}"), "containers[0].startupProbe.exec.command", "which command"},
		"a probe of no port":               {container("livenessProbe: {httpGet: {path: /}}"), "containers[0].livenessProbe.httpGet.port", "between 1 and 65535"},
		"a probe of a named port":          {container("livenessProbe: {httpGet: {path: /, port: http}}"), "", ""},
		"a hook of nothing":                {container("lifecycle: {preStop: {}}"), "containers[0].lifecycle.preStop", "must have one handler"},
		"a hook that sleeps":               {container("lifecycle: {preStop: {sleep: {seconds: 3}}}"), "", ""},
		"an init container with a probe":   {c + ", initContainers: [{name: a, image: i, livenessProbe: {exec: {command: [a]}}}]", "initContainers[0]", "no probes"},
		"a side-car with a probe":          {c + ", initContainers: [{name: a, image: i, restartPolicy: Always, livenessProbe: {exec: {command: [a]}}}]", "", ""},
		"a volume of two sources":          {c + ", volumes: [{name: a, emptyDir: {}, hostPath: {path: /x}}]", "volumes[0]", "must have one source"},
		"a volume without a source":        {c + ", volumes: [{name: a}]", "", ""},
		"a volume of no Secret":            {c + ", volumes: [{name: a, secret: {}}]", "volumes[0].secret.secretName", "what is in the volume"},
		"a mount in no place":              {container("volumeMounts: [{name: a, mountPath: ''}]") + ", volumes: [{name: a}]", "containers[0].volumeMounts[0].mountPath", "where in the container"},
		"two mounts in one place":          {container("volumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: /a, subPath: b}]") + ", volumes: [{name: a}]", "containers[0].volumeMounts[1].mountPath", "Duplicate value"},
		"a variable with two values":       {container("env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"), "containers[0].env[0].valueFrom", "leave it out, or the value"},
		"a variable of nothing":            {variable("{}"), "containers[0].env[0].valueFrom", "must have one source"},
		"a variable of an unknown field":   {variable("{fieldRef: {fieldPath: status.podIp}}"), "containers[0].env[0].valueFrom.fieldRef.fieldPath", `"status.podIP"`},
		"a variable of a label":            {variable(`{fieldRef: {fieldPath: "metadata.labels['a.b/c']"}}`), "", ""},
		"a variable of an invalid Secret":  {variable("{secretKeyRef: {name: HF_TOKEN, key: t}}"), "containers[0].env[0].valueFrom.secretKeyRef.name", "lowercase RFC 1123 subdomain"},
		"a variable of no key":             {variable("{configMapKeyRef: {name: a}}"), "containers[0].env[0].valueFrom.configMapKeyRef.key", "must consist of"},
		"a variable of a Secret":           {variable("{secretKeyRef: {name: hf.token, key: HF_TOKEN, optional: true}}"), "", ""},
		"variables of an invalid Secret":   {container("envFrom: [{secretRef: {name: HF_TOKEN}}]"), "containers[0].envFrom[0].secretRef.name", "lowercase RFC 1123 subdomain"},
		"variables of nothing":             {container("envFrom: [{prefix: A}]"), "containers[0].envFrom[0]", "either configMapRef or secretRef"},
		"variables of a ConfigMap":         {container("envFrom: [{configMapRef: {name: a}}]"), "", ""},
		"a toleration of any value of one": {c + ", tolerations: [{key: a, operator: Exists, value: x}]", "tolerations[0].value", "the operator is Exists"},
		"a toleration with a typo":         {c + ", tolerations: [{key: a, operator: Exist}]", "tolerations[0].operator", `"Exists"`},
		"a toleration of no effect":        {c + ", tolerations: [{key: a, operator: Exists, effect: NoSchedul}]", "tolerations[0].effect", `"NoSchedule"`},
		"a toleration without a key":       {c + ", tolerations: [{value: a}]", "tolerations[0].operator", "must be Exists"},
		"a toleration for some time":       {c + ", tolerations: [{key: a, operator: Exists, tolerationSeconds: 3}]", "tolerations[0].effect", "must be NoExecute"},
		"tolerations":                      {c + ", tolerations: [{operator: Exists}, {key: a, value: b, effect: NoExecute, tolerationSeconds: 3}, {key: a, operator: Exists}]", "", ""},
		"an affinity with a typo":          {node("{key: a, operator: Equals, values: [b]}"), term + ".operator", `"In"`},
		"an affinity for no value":         {node("{key: a, operator: In}"), term + ".values", "is no number of values for the operator In"},
		"an affinity for a value of any":   {node("{key: a, operator: Exists, values: [b]}"), term + ".values", "is no number of values"},
		"an affinity":                      {node("{key: a, operator: In, values: [b, c]}, {key: d, operator: DoesNotExist}, {key: e, operator: Gt, values: ['3']}"), "", ""},
		"an affinity for pods nowhere":     {anti("{labelSelector: {}}"), "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey", "which label of nodes"},
		"an affinity for pods":             {anti("{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}"), "", ""},
		"an affinity of no weight": {c + ", affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}",
			"affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", "between 1 and 100"},
		"an unknown DNS policy":                         {c + ", dnsPolicy: ClusterFirstHostNet", "dnsPolicy", `"ClusterFirst"`},
		"an invalid service account":                    {c + ", serviceAccountName: Runner", "serviceAccountName", "lowercase RFC 1123 subdomain"},
		"a restart policy that the operator overwrites": {c + ", restartPolicy: Sometimes", "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := row.at
			if at != "" {
				at = "spec.pytorchReplicaSpecs.Master.template.spec." + at
			}
			template := named(aPyTorchJob, "p", "{pytorchReplicaSpecs: {Master: {template: {spec: {"+row.spec+"}}}}}")
			wantRefusal(t, appWrapper(t, component(template)), at, row.says)
			if strings.Contains(row.says, "image") || row.says == "" {
				ofKubernetes := named(aJob, "j", "{template: {spec: {"+row.spec+"}}}")
				wantRefusal(t, appWrapper(t, component(ofKubernetes)), "", "") // the API server says so itself
			}
		})
	}
}

func TestRestartPoliciesOfOperators(t *testing.T) {
	pod := func(policy string) string {
		return "{spec: {restartPolicy: " + policy + ", containers: [{name: c, image: i}]}}"
	}
	jobSet := func(policy string) string {
		return named(aJobSet, "s", "{replicatedJobs: [{name: w, template: {spec: {template: "+pod(policy)+"}}}]}")
	}
	lws := func(policy string) string {
		return named(groups, "g", "{leaderWorkerTemplate: {size: 2, workerTemplate: "+pod(policy)+"}}")
	}
	ray := func(policy string) string {
		return named(aCluster, "r", "{headGroupSpec: {template: "+pod(policy)+"}}")
	}
	torch := func(policy string) string {
		return named(aPyTorchJob, "p", strings.Replace(masterAlone, "{replicas", "{restartPolicy: "+policy+", replicas", 1))
	}
	mpi := func(policy string) string {
		return named("apiVersion: kubeflow.org/v2beta1, kind: MPIJob", "m", "{mpiReplicaSpecs: {Launcher: {restartPolicy: "+policy+", template: "+podTemplate+"}}}")
	}
	for template, at := range map[string]string{
		jobSet("Always"):    "spec.replicatedJobs[0].template.spec.template.spec.restartPolicy",
		jobSet("OnFailure"): "",
		lws("Never"):        "spec.leaderWorkerTemplate.workerTemplate.spec.restartPolicy",
		lws("Always"):       "",
		ray("never"):        "spec.headGroupSpec.template.spec.restartPolicy",
		ray("Never"):        "",
		torch("OnFail"):     "spec.pytorchReplicaSpecs.Master.restartPolicy",
		torch("ExitCode"):   "",
		mpi("ExitCode"):     "spec.mpiReplicaSpecs.Launcher.restartPolicy",
		mpi("OnFailure"):    "",
	} {
		t.Run(template, func(t *testing.T) {
			says := ""
			if at != "" {
				says = "Invalid value"
				if strings.Contains(at, "template.spec.r") || strings.Contains(at, "Template.spec.r") {
					says = "supported values"
				}
			}
			wantRefusal(t, appWrapper(t, component(template)), at, says)
		})
	}
}
