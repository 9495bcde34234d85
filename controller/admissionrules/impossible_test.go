// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// long is a name of so many characters.
func long(characters int) string { return strings.Repeat("n", characters) }

// named is an object of some kind, with a name and the spec that a row is about.
func named(kind, name, spec string) string {
	return fmt.Sprintf("{%s, metadata: {name: %s}, spec: %s}", kind, name, spec)
}

const (
	aJob          = "apiVersion: batch/v1, kind: Job"
	aJobSet       = "apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet"
	aSet          = "apiVersion: apps/v1, kind: StatefulSet"
	aDeployment   = "apiVersion: apps/v1, kind: Deployment"
	groups        = "apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet"
	aPyTorchJob   = "apiVersion: kubeflow.org/v1, kind: PyTorchJob"
	aCluster      = "apiVersion: ray.io/v1, kind: RayCluster"
	aRayJob       = "apiVersion: ray.io/v1, kind: RayJob"
	aHead         = "{headGroupSpec: {template: " + podTemplate + "}}"
	masterAlone   = "{pytorchReplicaSpecs: {Master: {replicas: 1, template: " + trainer + "}}}"
	oneJobOfFour  = "{replicatedJobs: [{name: w, template: {spec: {parallelism: 4, completions: 4, template: " + podTemplate + "}}}]}"
	groupsOfThree = "{replicas: 2, leaderWorkerTemplate: {size: 3, workerTemplate: " + podTemplate + "}}"
)

// The limits of the names are those that the API server, JobSet's webhook and the MPI operator check, and those of the
// Services and labels that the others make.
func TestWhatCanNeverRunIsRefused(t *testing.T) {
	for sentence, row := range map[string]struct {
		template string
		at, says string // nothing is refused if they are empty
	}{
		"a number in a ConfigMap": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {epochs: 12, optimizer: adamw}}`,
			"data[epochs]", `Invalid value: "number": must be a string: write it in quotes`},
		"plain text in a Secret, which is not repeated": {
			`{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {token: "hush!"}}`,
			"data[token]", `Invalid value: "string": must be text in base64: for plain text, use stringData`},
		"text for a number":    {named(aJob, "j", "{backoffLimit: '3', template: "+podTemplate+"}"), "spec.backoffLimit", "must be a whole number of 32 bits"},
		"text for a switch":    {named(aJob, "j", "{podReplacementPolicy: 1, template: "+podTemplate+"}"), "spec.podReplacementPolicy", "must be a string"},
		"a list for an object": {named(aJob, "j", "{podFailurePolicy: [], template: "+podTemplate+"}"), "spec.podFailurePolicy", "must be an object"},
		"an object for a list": {named(aDeployment, "d", "{selector: {matchExpressions: {}}, template: "+podTemplate+"}"), "spec.selector.matchExpressions", "must be a list"},
		"an amount that is none": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {resources: {requests: {storage: much}}}}`,
			"spec.resources.requests[storage]", "must be an amount: a number, and a unit such as m, k"},
		"an amount without quotes":              {named(aJob, "j", "{template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 0.5}}}]}}}"), "", ""},
		"a field that the API server drops":     {named(aJob, "j", "{hurry: true, template: "+podTemplate+"}"), "", ""},
		"a label of an operator's kind":         {"{" + aCluster + ", metadata: {name: r, labels: {a: 1}}, spec: {headGroupSpec: {template: " + podTemplate + "}}}", "metadata.labels[a]", "must be a string"},
		"nothing, where something may be":       {named(aJob, "j", "{backoffLimit: null, template: "+podTemplate+"}"), "", ""},
		"a label with a space":                  {"{" + aJob + ", metadata: {name: j, labels: {a: b c}}, spec: {template: " + podTemplate + "}}", "metadata.labels", "a valid label must"},
		"an annotation with a space":            {"{" + aJob + ", metadata: {name: j, annotations: {a b: c}}, spec: {template: " + podTemplate + "}}", "metadata.annotations", "name part must"},
		"a label of pods that is too long":      {named(aPyTorchJob, "p", strings.Replace(masterAlone, "{spec", "{metadata: {labels: {a: "+long(64)+"}}, spec", 1)), "spec.pytorchReplicaSpecs.Master.template.metadata.labels", "must be no more than 63"},
		"a name with capital letters":           {named(aJob, "Train", "{template: "+podTemplate+"}"), "metadata.name", "lowercase RFC 1123 subdomain"},
		"a Job's name that fits a label":        {named(aJob, long(63), "{template: "+podTemplate+"}"), "", ""},
		"a Job's name that does not":            {named(aJob, long(64), "{template: "+podTemplate+"}"), "metadata.name", "is too long by 1: a label of each of its pods would be"},
		"a Job of numbered pods":                {named(aJob, long(61), "{completions: 11, completionMode: Indexed, template: "+podTemplate+"}"), "metadata.name", "is too long by 1: the host name of its last pod would be"},
		"a numbered Job with a dot":             {named(aJob, "a.b", "{completions: 1, completionMode: Indexed, template: "+podTemplate+"}"), "metadata.name", `the host name of its last pod would be "a.b-0": must not contain dots`},
		"a Job with a dot":                      {named(aJob, "a.b", "{template: "+podTemplate+"}"), "", ""},
		"a Deployment of any length":            {named(aDeployment, long(200), "{template: "+podTemplate+"}"), "", ""},
		"a PyTorchJob that has a Service":       {named(aPyTorchJob, long(54), masterAlone), "", ""},
		"a PyTorchJob without room for one":     {named(aPyTorchJob, long(57), masterAlone), "metadata.name", "is too long by 3: the Service of its last Master would be"},
		"a PyTorchJob that begins with a digit": {named(aPyTorchJob, "7b", masterAlone), "metadata.name", `the Service of its last Master would be "7b-master-0": a DNS-1035 label`},
		"a StatefulSet with room for revisions": {named(aSet, long(52), "{template: "+podTemplate+"}"), "", ""},
		"a StatefulSet without":                 {named(aSet, long(53), "{template: "+podTemplate+"}"), "metadata.name", "is too long by 1: the label of each of its pods that has its revision would be"},
		"a JobSet with room for its pods":       {named(aJobSet, long(51), oneJobOfFour), "", ""},
		"a JobSet without":                      {named(aJobSet, long(52), oneJobOfFour), "metadata.name", "is too long by 1: its last pod of w would be"},
		"groups with room":                      {named(groups, long(50), groupsOfThree), "", ""},
		"groups without":                        {named(groups, long(51), groupsOfThree), "metadata.name", "is too long by 1: the label of the workers of its last group that has their revision would be"},
		"a generated name is counted, too": {
			"{" + aPyTorchJob + ", metadata: {generateName: " + long(44) + "-}, spec: " + masterAlone + "}", "metadata.generateName", "is too long by 1: the Service of its last Master"},
		"a Job that somebody should start":        {named(aJob, "j", "{suspend: true, template: "+podTemplate+"}"), "spec.suspend", "leave it out: the AppWrapper is suspended until it has quota"},
		"a Job that nobody holds":                 {named(aJob, "j", "{suspend: false, template: "+podTemplate+"}"), "", ""},
		"a PyTorchJob that somebody should start": {named(aPyTorchJob, "p", strings.Replace(masterAlone, "{", "{runPolicy: {suspend: true}, ", 1)), "spec.runPolicy.suspend", "leave it out"},
		"a group of a Ray cluster that waits": {
			named(aCluster, "r", "{headGroupSpec: {template: "+podTemplate+"}, workerGroupSpecs: [{suspend: true, replicas: 1, template: "+podTemplate+"}]}"),
			"spec.workerGroupSpecs[0].suspend", "leave it out"},
		"a RayCluster with room for its Services":    {named(aCluster, long(53), aHead), "", ""},
		"a RayCluster without":                       {named(aCluster, long(54), aHead), "metadata.name", "is too long by 1: the longest name of a Service of its cluster would be"},
		"a RayCluster that begins with a digit":      {named(aCluster, "7b", aHead), "metadata.name", "a DNS-1035 label"},
		"a RayJob with room for its cluster":         {named(aRayJob, long(47), "{rayClusterSpec: "+aHead+"}"), "", ""},
		"a RayJob without":                           {named(aRayJob, long(48), "{rayClusterSpec: "+aHead+"}"), "metadata.name", "is too long by 1"},
		"a RayService without room for its clusters": {named("apiVersion: ray.io/v1, kind: RayService", long(48), "{rayClusterConfig: "+aHead+"}"), "metadata.name", "is too long by 1"},
		"a Deployment that is paused":                {named(aDeployment, "d", "{paused: true, template: "+podTemplate+"}"), "spec.paused", "leave it out"},
		"a Job that MultiKueue manages":              {named(aJob, "j", "{managedBy: kueue.x-k8s.io/multikueue, template: "+podTemplate+"}"), "spec.managedBy", "nobody would start what it wraps"},
		"a Job that its own controller does":         {named(aJob, "j", "{managedBy: kubernetes.io/job-controller, template: "+podTemplate+"}"), "", ""},
		"a JobSet of a Job that nobody makes":        {named(aJobSet, "s", strings.Replace(oneJobOfFour, "{parallelism", "{managedBy: kueue.x-k8s.io/multikueue, parallelism", 1)), "spec.replicatedJobs[0].template.spec.managedBy", "leave it out"},
		"a JobSet whose Service has no name": {
			named(aJobSet, "s", strings.Replace(oneJobOfFour, "{", "{network: {subdomain: "+long(90)+"}, ", 1)), "spec.network.subdomain", "must be no more than 63 characters"},
		"a JobSet that waits for no Job": {
			named(aJobSet, "s", strings.Replace(oneJobOfFour, "{name: w", "{name: w, dependsOn: [{name: x, status: Ready}]", 1)), "spec.replicatedJobs[0].dependsOn[0].name", "one of the replicatedJobs before"},
		"a JobSet that waits for one": {
			named(aJobSet, "s", strings.Replace(oneJobOfFour, "[{", "[{name: x, template: {spec: {template: "+podTemplate+"}}}, {dependsOn: [{name: x, status: Ready}], ", 1)), "", ""},
		"a JobSet that succeeds with no Job": {
			named(aJobSet, "s", strings.Replace(oneJobOfFour, "{", "{successPolicy: {operator: All, targetReplicatedJobs: [w, x]}, ", 1)), "spec.successPolicy.targetReplicatedJobs[1]", "one of the replicatedJobs"},
		"a StatefulSet of pods without a domain": {named(aSet, "s", "{serviceName: "+long(64)+", template: "+podTemplate+"}"), "spec.serviceName", "must be no more than 63 characters"},
		"an image with capital letters": {
			named(aJob, "j", "{template: {spec: {containers: [{name: c, image: Registry.example.com/Vision/Train:Nightly}]}}}"),
			"spec.template.spec.containers[0].image", "no registry can have an image of this name: invalid reference format: repository name (Vision/Train) must be lowercase"},
		"an image of an init container":     {named(aJob, "j", "{template: {spec: {initContainers: [{name: i, image: 'a b'}], containers: [{name: c, image: i}]}}}"), "spec.template.spec.initContainers[0].image", "invalid reference format"},
		"an image with a port and a digest": {named(aJob, "j", "{template: {spec: {containers: [{name: c, image: 'R:5000/a/b:1@sha256:"+strings.Repeat("0", 64)+"'}]}}}"), "", ""},
		"an image that a webhook fills in":  {named(aJob, "j", "{template: {spec: {containers: [{name: c}]}}}"), "", ""},
		"a Ray head without containers": {
			named(aCluster, "r", "{headGroupSpec: {template: {spec: {containers: []}}}}"),
			"spec.headGroupSpec.template.spec.containers", "each group of a Ray cluster needs a container"},
		"a PyTorchJob in which nothing is called so":    {named(aPyTorchJob, "p", strings.Replace(masterAlone, "pytorch,", "trainer,", 1)), "spec.pytorchReplicaSpecs.Master.template.spec.containers", "a container of a PyTorchJob must have the name pytorch"},
		"a PyTorchJob with a container before it":       {named(aPyTorchJob, "p", strings.Replace(masterAlone, "[", "[{name: proxy, image: i}, ", 1)), "", ""},
		"an MPIJob, whose containers may have any name": {named("apiVersion: kubeflow.org/v1, kind: MPIJob", "m", "{mpiReplicaSpecs: {Launcher: {template: "+podTemplate+"}}}"), "", ""},
		"an MPIJob without a launcher":                  {named("apiVersion: kubeflow.org/v1, kind: MPIJob", "m", "{mpiReplicaSpecs: {Worker: {replicas: 1, template: "+podTemplate+"}}}"), "spec.mpiReplicaSpecs", "must have Launcher"},
		"an MPIJob whose workers have no template":      {named("apiVersion: kubeflow.org/v1, kind: MPIJob", "m", "{mpiReplicaSpecs: {Launcher: {template: "+podTemplate+"}, Worker: {replicas: 1}}}"), "spec.mpiReplicaSpecs", "must have Worker"},
		"an MPIJob of which one launcher is made":       {named("apiVersion: kubeflow.org/v1, kind: MPIJob", "m", "{mpiReplicaSpecs: {Launcher: {replicas: 2, template: "+podTemplate+"}}}"), "", ""},
		"an MPIJob of two launchers":                    {named("apiVersion: kubeflow.org/v2beta1, kind: MPIJob", "m", "{mpiReplicaSpecs: {Launcher: {replicas: 2, template: "+podTemplate+"}}}"), "spec.mpiReplicaSpecs.Launcher.replicas", "must be 1"},
		"an MPIJob of workers that are none":            {named("apiVersion: kubeflow.org/v2beta1, kind: MPIJob", "m", "{mpiReplicaSpecs: {Launcher: {template: "+podTemplate+"}, Worker: {template: "+podTemplate+"}}}"), "spec.mpiReplicaSpecs.Worker.replicas", "must be at least 1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			components := []string{component(row.template)}
			if !strings.Contains(row.template, "containers") {
				components = append(components, component(job))
			}
			wantRefusal(t, appWrapper(t, components...), row.at, row.says)
		})
	}
}

func wantRefusal(t *testing.T, aw *v1beta2.AppWrapper, at, says string) {
	t.Helper()
	problems := ValidateCreate(aw, DefaultLimits)
	if says == "" {
		if len(problems) > 0 {
			t.Errorf("it is refused: %v", problems)
		}
		return
	}
	if len(problems) != 1 || problems[0].Field != "spec.components[0].template."+at || !strings.Contains(problems[0].ErrorBody(), says) {
		t.Errorf("want one problem at %q that says %q, got:\n%v", at, says, problems)
	}
}

func TestAllReasonsAreThereAtOnce(t *testing.T) {
	template := named(aPyTorchJob, long(60), "{runPolicy: {suspend: true}, pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: c, image: A}]}}}}}")
	config := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: 1}}, data: {a: 1, b: [], c: {}}}`
	got := map[string]bool{}
	for _, p := range ValidateCreate(appWrapper(t, component(template), component(config)), DefaultLimits) {
		got[strings.TrimPrefix(p.Field, "spec.components")] = true
	}
	for _, at := range []string{
		"[0].template.metadata.name", "[0].template.spec.runPolicy.suspend",
		"[0].template.spec.pytorchReplicaSpecs.Master.template.spec.containers",
		"[0].template.spec.pytorchReplicaSpecs.Master.template.spec.containers[0].image",
		"[1].template.metadata.labels[a]", "[1].template.data[a]", "[1].template.data[b]", "[1].template.data[c]",
	} {
		if !got[at] {
			t.Errorf("nothing is said of %s", at)
		}
		delete(got, at)
	}
	if len(got) > 0 {
		t.Errorf("more is said: %v", got)
	}
}

// What was stored by an older release goes on.
func TestNothingOfThisIsAskedOfWhatIsStored(t *testing.T) {
	stored := appWrapper(t, component(named(aJob, long(64), "{suspend: true, template: {spec: {containers: [{name: c, image: A}]}}}")))
	if problems := ValidateUpdate(stored, stored.DeepCopy()); len(problems) > 0 {
		t.Error(problems)
	}
}
