// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/commandline"
)

// inFolder writes a file into a new folder, in which the test then works.
func inFolder(t *testing.T, name, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The first line of each file is the command. What it says beside the AppWrapper comes first, as
// comments.
func TestPack(t *testing.T) {
	golden.Pairs(t, "testdata/pack", func(t *testing.T, in []byte) []byte {
		file := fileOf(t, in)
		line, _, _ := strings.Cut(string(in), "\n")
		out, notes, err := command(t, append(strings.Fields(line)[1:], file)...)
		if err != nil {
			notes += "mlbatch: " + err.Error() + "\n"
		}
		var all bytes.Buffer
		for note := range strings.Lines(notes) {
			all.WriteString("# " + strings.ReplaceAll(note, file, "work.yaml"))
		}
		all.WriteString(out)
		return all.Bytes()
	})
}

const (
	podSpec = `spec: {containers: [{name: main, image: a}]}`
	aPod    = `{apiVersion: v1, kind: Pod, metadata: {name: work}, ` + podSpec + `}`
	aJob    = `{apiVersion: batch/v1, kind: Job, metadata: {name: work}, spec: {template: {` + podSpec + `}}}`
	unknown = `{apiVersion: v1, kind: ReplicationController, metadata: {name: web}, spec: {template: {` + podSpec + `}}}`
	data    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: data}}`
)

// volcano is the least that TorchX writes.
const volcano = `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: a}, spec: {queue: q, tasks: [` +
	`{name: b-0, replicas: 1, template: {spec: {containers: [{image: a, name: b}], restartPolicy: Never}}}]}}`

// tasks are those of replicas with a number in their commands.
func tasks(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{name: b-%d, replicas: 1, template: {spec: {containers: [{image: a, name: b, command: [run, '%d']}], restartPolicy: Never}}}", i, i))
	}
	return strings.Join(all, ", ")
}

// with replaces something in a manifest.
func with(manifest, old, replacement string) string {
	return strings.Replace(manifest, old, replacement, 1)
}

func TestWhatCannotBePackedIsOneSentence(t *testing.T) {
	kind := func(apiVersion, kind string) string {
		return "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: x}}"
	}
	for name, row := range map[string]struct{ flags, manifest, says string }{
		"no AppWrapper of MCAD": {"--from-mcad", aPod, "--from-mcad takes one AppWrapper of v1beta1, and nothing else: convert them one after the other"},
		"what MCAD had before": {"--from-mcad", `{apiVersion: mcad.ibm.com/v1beta1, kind: AppWrapper, metadata: {name: a}, spec: {resources: {Items: [1]}}}`,
			"work.yaml: AppWrapper/a: spec.resources.Items has objects: only GenericItems are taken over, move them there"},
		"a number that is none": {"--from-mcad", `{apiVersion: mcad.ibm.com/v1beta1, kind: AppWrapper, metadata: {name: a}, spec: {priority: high}}`,
			"work.yaml: AppWrapper/a: it cannot be read as an AppWrapper of MCAD: "},
		"an empty dump":                {"--from-torchx", "\n", "work.yaml: it is empty: TorchX prints its request as a log, so set LOGLEVEL=INFO and redirect 2>&1"},
		"a dump without a request":     {"--from-torchx", "=== APPLICATION ===\n{ 'name': 'a',", "work.yaml: it has no line === SCHEDULER REQUEST ===: it is cut off"},
		"a dump that ends in a word":   {"--from-torchx", "=== SCHEDULER REQUEST ===\napiVersion: v1\nki", "its request is cut off, or not of TorchX's schedulers kubernetes and kubernetes_mcad: work.yaml: cannot read document 1: "},
		"a request without a kind":     {"--from-torchx", "=== SCHEDULER REQUEST ===\napiVersion: v1\n", "it is no Kubernetes object: it needs apiVersion, kind and metadata"},
		"a request of nothing":         {"--from-torchx", "=== SCHEDULER REQUEST ===\n", "its request is cut off, or not of TorchX's schedulers kubernetes and kubernetes_mcad"},
		"a request for processes":      {"--from-torchx", "=== SCHEDULER REQUEST ===\nPopenRequest(\n    app_id='a',\n    role_params={})\n", "its request is cut off, or not of TorchX's schedulers kubernetes and kubernetes_mcad"},
		"a Job of Kubernetes":          {"--from-torchx", aJob, "work.yaml: Job/work: it is batch/v1: --from-torchx takes what TorchX prints for its schedulers kubernetes and kubernetes_mcad"},
		"a dump with a replica less":   {"--from-torchx", "=== APPLICATION ===\n{'num_replicas': 2, 'min_replicas': 1}\n=== SCHEDULER REQUEST ===\n" + volcano, "work.yaml: Job/a: it has 1 replicas, and its application 2: it is cut off"},
		"a dump without tasks":         {"--from-torchx", "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: a}, spec: {queue: q}}", "work.yaml: Job/a: it has no replica of TorchX: it is cut off, or another program wrote it"},
		"a task without containers":    {"--from-torchx", with(volcano, "containers: [{image: a, name: b}], ", ""), "work.yaml: Job/a: spec.tasks[0] has no containers: it is cut off"},
		"a container without a name":   {"--from-torchx", with(volcano, ", name: b", ""), "work.yaml: Job/a: spec.tasks[0] has a container without a name or an image: it is cut off"},
		"a container that is a number": {"--from-torchx", with(volcano, "{image: a, name: b}", "1"), "work.yaml: Job/a: spec.tasks[0] has a pod that cannot be read ("},
		"a dump without its last line": {"--from-torchx", with(volcano, ", restartPolicy: Never", ""), "work.yaml: Job/a: spec.tasks[0] has no restartPolicy: it is cut off"},
		"a mount without a volume":     {"--from-torchx", with(volcano, "name: b}", "name: b, volumeMounts: [{name: dshm, mountPath: /dev/shm}]}"), "work.yaml: Job/a: spec.tasks[0] has no volume dshm: it is cut off"},
		"a task without a name":        {"--from-torchx", with(volcano, "name: b-0, ", ""), `work.yaml: Job/a: spec.tasks[0] has the name "" and 1 replicas: TorchX writes a task with a name for each replica`},
		"a task of two replicas":       {"--from-torchx", with(volcano, "replicas: 1", "replicas: 2"), `work.yaml: Job/a: spec.tasks[0] has the name "b-0" and 2 replicas: TorchX writes a task with a name for each replica`},
		"a plugin that TorchX has not": {"--from-torchx", with(volcano, "queue: q", "queue: q, plugins: {ssh: []}"), "work.yaml: Job/a: spec.plugins.ssh is not from TorchX, and nothing here would do the same: remove it"},
		"a policy of Volcano's":        {"--from-torchx", with(volcano, "replicas: 1", "replicas: 1, policies: [{action: CompleteJob, event: TaskCompleted}]"), "work.yaml: Job/a: spec.tasks[0].policies has CompleteJob after TaskCompleted: only RestartJob after PodEvicted and PodFailed is from TorchX"},
		"a field of Volcano's":         {"--from-torchx", with(volcano, "queue: q", "queue: q, ttlSecondsAfterFinished: 9"), "work.yaml: Job/a: spec.ttlSecondsAfterFinished is not from TorchX, and nothing here would do the same: remove it"},
		"a task's field of Volcano's":  {"--from-torchx", with(volcano, "replicas: 1", "replicas: 1, dependsOn: {name: [x]}"), "work.yaml: Job/a: spec.tasks[0].dependsOn is not from TorchX, and nothing here would do the same: remove it"},
		"retries that are a word":      {"--from-torchx", with(volcano, "queue: q", "maxRetry: many"), "work.yaml: Job/a: it cannot be read as a Job of Volcano: "},
		"a long name of TorchX":        {"--from-torchx", with(volcano, "name: a}", "name: "+strings.Repeat("a", 58)+"}"), "-b-0-0 has 64 characters, and may have at most 63: give torchx a shorter --name"},
		"replicas that all differ":     {"--from-torchx", "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: a}, spec: {tasks: [" + tasks(19) + "]}}", "there may be at most 18 pod sets"},
		"another priority in a dump":   {"--from-torchx --priority low", with(volcano, "containers:", "priorityClassName: high, containers:"), "has priorityClassName high, and --priority sets low: remove one of them"},
		"a dump of MCAD without a Service": {"--from-torchx", "{apiVersion: workload.codeflare.dev/v1beta1, kind: AppWrapper, metadata: {name: a}, spec: {resources: {GenericItems: [{generictemplate: {apiVersion: v1, kind: Pod, " +
			"metadata: {name: a-0, labels: {torchx.pytorch.org/role-name: b, torchx.pytorch.org/replica-id: '0'}}, spec: {containers: [{name: a-0, image: a}], restartPolicy: Never}}}]}}}", "work.yaml: AppWrapper/a: it has no Service a, which TorchX writes last: it is cut off"},
		"an AppWrapper of MCAD alone": {"--from-torchx", "{apiVersion: mcad.ibm.com/v1beta1, kind: AppWrapper, metadata: {name: a}, spec: {resources: {GenericItems: [{generictemplate: {apiVersion: v1, kind: Service, metadata: {name: a}}}]}}}", "work.yaml: AppWrapper/a: it has no replica of TorchX: it is cut off, or another program wrote it"},
		"two dumps":                   {"--from-torchx a.yaml", aPod, "--from-torchx takes one file: convert them one after the other"},
		"two formats":                 {"--from-torchx --from-mcad", aPod, "if any flags in the group [from-mcad from-torchx] are set none of the others can be"},
		"no file":                     {"missing.yaml", aPod, "cannot read the manifests: open missing.yaml"},
		"an unknown format":           {"-o xml", aPod, `invalid argument "xml" for "-o, --output" flag: use yaml or json`},
		"no object":                   {"", "# nothing\n---\n", "there is no object in the manifests"},
		"no pods":                     {"", data, "no object makes pods that MLBatch knows of: add the Job, Pod or other work that these are for, or say with --pod-set what makes them"},
		"no YAML":                     {"", "a: b: c", "work.yaml: cannot read document 1: yaml: mapping values are not allowed"},
		"no object of a kind":         {"", aPod + "\n---\n{a: 1}", "work.yaml: cannot read document 2: it is no Kubernetes object: it needs apiVersion, kind and metadata"},
		"a field twice":               {"", with(aPod, "name: work", "name: work, name: b"), `key "name" is there twice: remove one`},
		"no name":                     {"", with(aPod, "name: work", ""), "work.yaml: Pod/: metadata.name: Required value: a name or a generateName"},
		"a pod set of nobody":         {"--pod-set ReplicationController/web:spec.template=2", aPod, "--pod-set ReplicationController/web:spec.template=2: there is no ReplicationController web"},
		"a pod set without a number": {"--pod-set ReplicationController/web:spec.template", unknown,
			"cannot read --pod-set ReplicationController/web:spec.template: write KIND/NAME:PATH=REPLICAS, such as ReplicationController/web:spec.template=2"},
		"a negative number of pods":     {"--pod-set a/b:c=-1", unknown, "cannot read --pod-set a/b:c=-1: write KIND/NAME:PATH=REPLICAS"},
		"a path without a pod template": {"--pod-set ConfigMap/data:spec.template=2", data, `work.yaml: ConfigMap/data: path "template.spec.template": there is no field "spec"`},
		"pods that are counted already": {"--pod-set Job/work:spec.template=2", aJob, `work.yaml: Job/work: podSets: Invalid value: 1: the pod set at "template.spec.template" is declared with 2 replicas but the template has 1`},
		"pods that nobody counts":       {"", unknown, "work.yaml: ReplicationController/web: MLBatch does not know how many pods this kind makes: say it with --pod-set ReplicationController/web:spec.template=REPLICAS"},
		"an object like a pod":          {"", "{apiVersion: example.com/v1, kind: Sandbox, metadata: {name: x}, " + podSpec + "}", "say it with --pod-set Sandbox/x:.=REPLICAS"},
		"another version":               {"", with(aJob, "batch/v1", "batch/v2"), `work.yaml: Job/work: apiVersion: Unsupported value: "batch/v2": supported values: "batch/v1"`},
		"a misspelt field of a pod":     {"", with(aJob, "image", "imgae"), `work.yaml: Job/work: the pod template at "template.spec.template" is not valid: strict decoding error: unknown field "containers[0].imgae"`},
		"a field of another type":       {"", with(aJob, "image", "command: sleep 5, image"), `work.yaml: Job/work: spec.template.spec.containers[0].command: Invalid value: "string": must be a list`},
		"a namespace":                   {"", kind("v1", "Namespace"), "work.yaml: Namespace/x: it belongs to the whole cluster: an administrator adds teams. Choose one with --namespace"},
		"a ClusterRole":                 {"", kind("rbac.authorization.k8s.io/v1", "ClusterRole"), "work.yaml: ClusterRole/x: it belongs to the whole cluster, and not to a namespace: an administrator applies it"},
		"a CRD":                         {"", kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "work.yaml: CustomResourceDefinition/x: it belongs to the whole cluster"},
		"an AppWrapper":                 {"", kind("workload.codeflare.dev/v1beta2", "AppWrapper"), "work.yaml: AppWrapper/x: an AppWrapper cannot wrap another one: apply it as it is"},
		"a queue":                       {"", kind("kueue.x-k8s.io/v1beta2", "LocalQueue"), "work.yaml: LocalQueue/x: queues and quota are not part of the work: leave it out, and name the queue with --queue"},
		"a Run":                         {"", kind("codeflare.dev/v1alpha1", "Run"), "work.yaml: Run/x: a Run has an AppWrapper of its own: use mlbatch run submit"},
		"a CronJob":                     {"", kind("batch/v1", "CronJob"), "work.yaml: CronJob/x: the number of its pods changes, and Kueue would not count them: pack the Job of one run"},
		"an autoscaler":                 {"", kind("autoscaling/v2", "HorizontalPodAutoscaler"), "the number of its pods changes, and Kueue would not count them: leave it out, and set replicas"},
		"what each namespace has":       {"", with(data, "name: data", "name: kube-root-ca.crt"), "work.yaml: ConfigMap/kube-root-ca.crt: each namespace has one already: leave it out"},
		"a hook of Helm":                {"", with(aPod, "name: work", "name: work, annotations: {helm.sh/hook: test}"), "work.yaml: Pod/work: it is a Helm hook (test), and not a part of the work: render without it, with helm template --no-hooks"},
		"the pod of a Job": {"", with(aPod, "name: work", "name: work-x7, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: work, uid: u, controller: true}]"),
			"work.yaml: Pod/work-x7: it belongs to Job/work: pack that instead, or remove ownerReferences"},
		"a suspended Job":    {"", with(aJob, "spec: {", "spec: {suspend: true, "), "work.yaml: Job/work: spec.suspend is true, and nobody would change that: remove it, because the AppWrapper waits for quota"},
		"a queue of its own": {"", with(aJob, "name: work", "name: work, labels: {kueue.x-k8s.io/queue-name: fast}"), "work.yaml: Job/work: its label kueue.x-k8s.io/queue-name is fast: use --queue fast, or remove the label"},
		"another queue":      {"--queue slow", with(aJob, "name: work", "name: work, labels: {kueue.x-k8s.io/queue-name: fast}"), "use --queue fast, or remove the label"},
		"another namespace":  {"-n blue", with(aJob, "name: work", "name: work, namespace: red"), "work.yaml: Job/work: it is in namespace red, and the AppWrapper in blue: remove metadata.namespace, or pack it alone"},
		"two namespaces":     {"", with(aJob, "name: work", "name: work, namespace: red") + "\n---\n" + with(data, "name: data", "name: data, namespace: blue"), "work.yaml: ConfigMap/data: it is in namespace blue, and the AppWrapper in red"},
		"an object twice":    {"", aJob + "\n---\n" + aJob, "work.yaml: Job/work: it is there twice: work.yaml has it, too"},
		"a finalizer":        {"", with(aJob, "name: work", "name: work, finalizers: [a/b]"), "work.yaml: Job/work: metadata.finalizers: Forbidden: must be empty: the AppWrapper would keep its quota"},
		"a reserved label":   {"", with(aJob, "name: work", "name: work, labels: {workload.codeflare.dev/appwrapper: x}"), "leave it out: the controller says which AppWrapper an object belongs to"},
		"another priority":   {"--priority high", with(aPod, "containers", "priorityClassName: low, containers"), "work.yaml: Pod/work: template has priorityClassName low, and --priority sets high: remove one of them"},
		"another PodGroup":   {"--pod-group", with(aPod, "name: work", "name: work, labels: {scheduling.x-k8s.io/pod-group: g}"), "work.yaml: Pod/work: template has scheduling.x-k8s.io/pod-group g, and --pod-group sets work-gang: remove one of them"},
		"two PodGroups":      {"--pod-group", aPod + "\n---\n" + kind("scheduling.x-k8s.io/v1alpha1", "PodGroup"), "work.yaml: PodGroup/x: a pod can be in one PodGroup only: leave out this one or --pod-group"},
		"a gang in a gang": {"--pod-group", aPod + "\n---\n{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: train}, spec: {pytorchReplicaSpecs: {Worker: {template: {" + podSpec + "}}}}}",
			"work.yaml: PyTorchJob/train: --pod-group would never start: the training operator groups these pods by themselves: leave out --pod-group, or pack this object alone"},
		"a gang whose workers are late": {"--pod-group", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: x}, spec: {startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 2, workerTemplate: {" + podSpec + "}}}}",
			"work.yaml: LeaderWorkerSet/x: --pod-group would never start: its workers start after their leader is ready: set spec.startupPolicy to LeaderCreated"},
		"a gang in order": {"--pod-group", "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: x}, spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: a, template: {spec: {template: {" + podSpec + "}}}}]}}",
			"its Jobs start in order: set spec.startupPolicy.startupPolicyOrder to AnyOrder"},
		"a gang of dependents": {"--pod-group", "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: x}, spec: {replicatedJobs: [{name: a, dependsOn: [{name: b, status: Ready}], template: {spec: {template: {" + podSpec + "}}}}]}}",
			"some of its Jobs wait for others: remove dependsOn"},
		"a gang whose launcher is late": {"--pod-group", "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: x}, spec: {launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {template: {" + podSpec + "}}}}}",
			"its launcher starts after its workers: set spec.launcherCreationPolicy to AtStartup"},
		"a PodGroup of nobody":  {"--pod-group", with(aJob, "spec: {", "spec: {parallelism: 0, completions: 0, "), "--pod-group: there are no pods, because all replicas are 0"},
		"a name with a dot":     {"--name a.b", aPod, "--name a.b: must not contain dots"},
		"a name that is long":   {"--name " + strings.Repeat("a", 62), aPod, "it has 62 characters, and may have at most 61, because PodGroups and pod sets are named after it"},
		"a queue that is none":  {"--queue a_b", aPod, "--queue a_b: a lowercase RFC 1123 label must consist of"},
		"a folder of no use":    {".git", aPod, "folder .git has no .yaml, .yml, .json file: name the files themselves"},
		"a kustomization":       {"", kind("kustomize.config.k8s.io/v1beta1", "Kustomization"), "it is an input of kustomize: pack what kustomize build prints"},
		"a second AppWrapper's": {"", kind("workload.codeflare.dev/v1beta1", "AppWrapper"), "an AppWrapper cannot wrap another one"},
	} {
		t.Run(name, func(t *testing.T) {
			inFolder(t, "work.yaml", row.manifest)
			if err := os.Mkdir(".git", 0o700); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"pack"}, strings.Fields(row.flags)...)
			if row.flags == "" || strings.HasPrefix(row.flags, "-") {
				args = append(args, "work.yaml")
			}
			out, progress, err := command(t, args...)
			wording.OneSentence(t, out+progress, err, row.says)
			if status := commandline.ExitStatus(0); errors.As(err, &status) {
				t.Errorf("the exit status is %d, and not 1", status)
			}
		})
	}
}

func TestPackNamesTheFlagsThatAreMissing(t *testing.T) {
	_, _, err := command(t, "pack")
	wording.OneSentence(t, "", err, "name the files to wrap, or - for standard input: mlbatch pack FILE…")
}

// Both formats have the same content, and pack reads the other files of a folder in its order.
func TestPackPrintsJSON(t *testing.T) {
	inFolder(t, "2.json", with(aJob, "name: work", "name: survey"))
	if err := os.WriteFile("1.yml", []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	inJSON, notes, err := command(t, "pack", "-o", "json", ".")
	if err != nil || notes != "" || !strings.HasPrefix(inJSON, "{\n  \"kind\": \"AppWrapper\"") {
		t.Fatalf("got %s, %s, %v", inJSON, notes, err)
	}
	inYAML, _, err := command(t, "pack", ".")
	if err != nil {
		t.Fatal(err)
	}
	var one, other any
	if err := errors.Join(yaml.Unmarshal([]byte(inJSON), &one), yaml.Unmarshal([]byte(inYAML), &other)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, other); diff != "" || strings.Index(inYAML, "kind: ConfigMap") > strings.Index(inYAML, "kind: Job") {
		t.Errorf("the order or the formats differ: %s\n%s", diff, inYAML)
	}
}

// A wrapped sample is what its parts become.
func TestASampleIsItsObjectPacked(t *testing.T) {
	for _, sample := range []string{"job", "pod", "gpu-job", "pytorchjob", "leaderworkerset"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "samples", sample+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Metadata struct{ Annotations any }
			Spec     struct {
				Components []struct{ Template map[string]any }
			}
		}
		if err := yaml.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		template, err := yaml.Marshal(want.Spec.Components[0].Template)
		if err != nil {
			t.Fatal(err)
		}
		out, notes, err := command(t, "pack", "--queue", "default-queue", fileOf(t, template))
		if err != nil || notes != "" {
			t.Fatalf("%s: %s, %v", sample, notes, err)
		}
		var one, other map[string]any
		if err := errors.Join(yaml.Unmarshal(text, &one), yaml.Unmarshal([]byte(out), &other)); err != nil {
			t.Fatal(err)
		}
		delete(one["metadata"].(map[string]any), "annotations")
		if diff := cmp.Diff(one, other); diff != "" {
			t.Errorf("%s: %s", sample, diff)
		}
	}
}

const pageOfPack = "../../docs/pack.md"

// The page shows what the command prints for its manifest, and has all flags.
func TestThePageOfPack(t *testing.T) {
	page, file := example(t, pageOfPack, "")
	out, notes, err := command(t, "pack", "--queue", "default-queue", file)
	if err != nil || notes != "" {
		t.Fatalf("got %q, %v", notes, err)
	}
	golden.Between(t, pageOfPack, "<!-- output: written by go test ./tools/mlbatch -run TestThePageOfPack -update -->\n```yaml\n", "```\n<!-- end of output -->", out)
	packCommand().Flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(page, "`--"+flag.Name+"`") {
			t.Errorf("the page lacks --%s", flag.Name)
		}
	})
}

const pageAboutMCAD = "../../docs/migrate-mcad.md"

// The command of the page is run on the manifest of the page.
func TestThePageAboutMCAD(t *testing.T) {
	page, file := example(t, pageAboutMCAD, "")
	var found [][]string
	for line := range strings.Lines(page) {
		if strings.Contains(line, "old.yaml > new.yaml") {
			found = append(found, calls(strings.TrimSpace(line))...)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the page has these commands: %q", found)
	}
	args := found[0]
	args[slices.Index(args, "old.yaml")] = file
	out, notes, err := command(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	const by = ": written by go test ./tools/mlbatch -run TestThePageAboutMCAD -update -->\n"
	notes = strings.ReplaceAll(notes, file, "old.yaml")
	golden.Between(t, pageAboutMCAD, "<!-- notes"+by+"```text\n", "```\n<!-- end of notes -->", notes)
	golden.Between(t, pageAboutMCAD, "<!-- output"+by+"```yaml\n", "```\n<!-- end of output -->", out)
}

const pageAboutTorchX = "../../docs/migrate-torchx.md"

// The command of the page is run on the request of the page.
func TestThePageAboutTorchX(t *testing.T) {
	page, file := example(t, pageAboutTorchX, "")
	const line = "mlbatch pack --from-torchx --queue default-queue dump.txt > work.yaml\n"
	if !strings.Contains(page, line) {
		t.Fatalf("the page lacks %s", line)
	}
	out, notes, err := command(t, "pack", "--from-torchx", "--queue", "default-queue", file)
	if err != nil || notes != "" {
		t.Fatalf("got %q, %v", notes, err)
	}
	const begin = "<!-- output: written by go test ./tools/mlbatch -run TestThePageAboutTorchX -update -->\n```yaml\n"
	golden.Between(t, pageAboutTorchX, begin, "```\n<!-- end of output -->", out)
}

// The path of an object that is like a pod is the object itself.
func TestAnObjectLikeAPodIsPacked(t *testing.T) {
	inFolder(t, "work.yaml", "{apiVersion: example.com/v1, kind: Sandbox, metadata: {name: x}, "+podSpec+"}")
	out, _, err := command(t, "pack", "--pod-set", "Sandbox/x:.=3", "work.yaml")
	if err != nil || !strings.Contains(out, "    - podSets:\n        - path: template\n          replicas: 3\n") {
		t.Errorf("got %s, %v", out, err)
	}
}
