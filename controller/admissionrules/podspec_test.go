// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

// The API server says the same of a pod, and of a Job; of a PyTorchJob it says nothing.
func TestAPodThatNoOperatorCouldCreateIsRefused(t *testing.T) {
	container := func(more string) string { return "{containers: [{name: pytorch, image: i, " + more + "}]}" }
	for sentence, row := range map[string]struct {
		spec     string
		at, says string // nothing is refused if they are empty
	}{
		"more requested than the limit":    {container("resources: {requests: {cpu: 2}, limits: {cpu: 1500m}}"), "containers[0].resources.requests[cpu]", "must be at most the limit, 1500m"},
		"as much as the limit":             {container("resources: {requests: {cpu: 2}, limits: {cpu: 2000m}}"), "", ""},
		"no limit":                         {container("resources: {requests: {cpu: 2}}"), "", ""},
		"less than nothing":                {container("resources: {requests: {cpu: -1}}"), "containers[0].resources.requests[cpu]", "must not be negative"},
		"half a GPU":                       {container("resources: {limits: {nvidia.com/gpu: 500m}}"), "containers[0].resources.limits[nvidia.com/gpu]", "must be a whole number"},
		"a GPU in thousandths":             {container("resources: {limits: {nvidia.com/gpu: 1000m}}"), "", ""},
		"half a core":                      {container("resources: {limits: {cpu: 500m}}"), "", ""},
		"fewer GPUs than the limit":        {container("resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}"), "containers[0].resources.requests[nvidia.com/gpu]", "must be the limit, 2"},
		"a mount of nothing":               {container("volumeMounts: [{name: data, mountPath: /data}]"), "containers[0].volumeMounts[0].name", "no volume has this name"},
		"a mount of a volume":              {container("volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, emptyDir: {}"), "", ""},
		"two volumes of a name":            {container("}], volumes: [{name: data, emptyDir: {}}, {name: data, emptyDir: {}"), "volumes[1].name", "Duplicate value"},
		"a volume with capital letters":    {container("}], volumes: [{name: Data, emptyDir: {}"), "volumes[0].name", "lowercase RFC 1123 label"},
		"two containers of a name":         {container("}, {name: pytorch, image: i"), "containers[1].name", "Duplicate value"},
		"an init container of the name":    {container("}], initContainers: [{name: pytorch, image: i"), "containers[0].name", "Duplicate value"},
		"a container with capital letters": {container("}, {name: Side, image: i"), "containers[1].name", "lowercase RFC 1123 label"},
		"a variable with a sign":           {container("env: [{name: 'a=b', value: x}]"), "containers[0].env[0].name", "other than '='"},
		"a variable with a dot":            {container("env: [{name: a.b-c, value: x}]"), "", ""},
		"a variable without a name":        {container("env: [{value: x}]"), "containers[0].env[0].name", ""},
		"a selector with a space":          {container("}], nodeSelector: {a: 'b c'}, x: [{"), "nodeSelector", "a valid label must"},
		"a host name with a dot":           {container("}], hostname: a.b, x: [{"), "hostname", "must not contain dots"},
		"a gate of Kueue":                  {container("}], schedulingGates: [{name: kueue.x-k8s.io/admission"), "schedulingGates[0]", "leave it out"},
		"a gate that somebody else opens":  {container("}], schedulingGates: [{name: example.com/data"), "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			spec := strings.Replace(row.spec, ", x: [{}]", "", 1)
			at := row.at
			if at != "" {
				at = "spec.pytorchReplicaSpecs.Master.template.spec." + at
			}
			template := named(aPyTorchJob, "p", "{pytorchReplicaSpecs: {Master: {template: {spec: "+spec+"}}}}")
			if at != "" && row.says == "" {
				row.says = "environment variable"
			}
			wantRefusal(t, appWrapper(t, component(template)), at, row.says)
		})
	}
}

func TestVolumesThatAControllerAddsMayBeMounted(t *testing.T) {
	mounts := func(volume string) string {
		return "{spec: {containers: [{name: c, image: i, volumeMounts: [{name: " + volume + ", mountPath: /v}]}]}}"
	}
	claim := "[{metadata: {name: data}}]"
	for sentence, template := range map[string]string{
		"a StatefulSet's claim":     named(aSet, "s", "{volumeClaimTemplates: "+claim+", template: "+mounts("data")+"}"),
		"a LeaderWorkerSet's claim": named(groups, "g", "{leaderWorkerTemplate: {size: 1, volumeClaimTemplates: "+claim+", workerTemplate: "+mounts("data")+"}}"),
		"a JobSet's claim":          named(aJobSet, "s", "{volumeClaimPolicies: [{templates: "+claim+"}], replicatedJobs: [{name: w, template: {spec: {template: "+mounts("data")+"}}}]}"),
		"the hosts of an MPIJob":    named("apiVersion: kubeflow.org/v2beta1, kind: MPIJob", "m", "{mpiReplicaSpecs: {Launcher: {template: "+mounts("mpi-job-config")+"}}}"),
		"Ray's shared memory":       named(aCluster, "r", "{headGroupSpec: {template: "+mounts("shared-mem")+"}}"),
		"a kind that nobody knows":  "{apiVersion: example.com/v1, kind: Custom, metadata: {name: c}, spec: {template: " + mounts("data") + "}}",
	} {
		t.Run(sentence, func(t *testing.T) {
			c := component(template)
			if strings.Contains(template, "Custom") {
				c = declared("[{path: template.spec.template}]", template)
			}
			wantRefusal(t, appWrapper(t, c), "", "")
		})
	}
}
