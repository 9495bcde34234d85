// SPDX-License-Identifier: Apache-2.0

package runschema_test

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runschema"
)

// An API server also estimates what the rules cost.
func TestAnAPIServerAcceptsTheCRDs(t *testing.T) {
	for kind, crd := range crds(t) {
		t.Run(kind, func(t *testing.T) {
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			var internal apiextensions.CustomResourceDefinition
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
				t.Fatal(err)
			}
			internal.Status.StoredVersions = []string{"v1alpha1"}
			if problems := validation.ValidateCustomResourceDefinition(t.Context(), &internal); len(problems) > 0 {
				t.Error(problems.ToAggregate())
			}
		})
	}
}

// oldest is the oldest Kubernetes that the charts support: it must know all functions of the rules.
var oldest = version.MajorMinor(1, 30)

func TestTheRulesCompileForTheOldestKubernetes(t *testing.T) {
	for kind, crd := range crds(t) {
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(&internal)
		if err != nil {
			t.Fatal(err)
		}
		if compileRules(t, kind, structural, true) == 0 {
			t.Errorf("%s has no rules", kind)
		}
	}
}

// compileRules returns how many rules a schema has.
func compileRules(t *testing.T, path string, s *structuralschema.Structural, root bool) int {
	t.Helper()
	compiled, err := structuralcel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, environment.MustBaseEnvSet(oldest), structuralcel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range compiled {
		if c.Error != nil || c.MessageExpressionError != nil {
			t.Errorf("%s: %v %v", path, c.Error, c.MessageExpressionError)
		}
	}
	found := len(compiled)
	for name := range s.Properties {
		child := s.Properties[name]
		found += compileRules(t, path+"."+name, &child, false)
	}
	if s.Items != nil {
		found += compileRules(t, path+"[]", s.Items, false)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		found += compileRules(t, path+"{}", s.AdditionalProperties.Structural, false)
	}
	return found
}

func compiled(t *testing.T) runschema.Schema {
	t.Helper()
	schema, err := runschema.New()
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func crds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := runschema.CRDs()
	if err != nil || len(all) != 4 {
		t.Fatalf("there are %d CRDs: %v", len(all), err)
	}
	return all
}

func TestTheSchemeKnowsTheKindsOfTheCRDs(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, crd := range crds(t) {
		for _, name := range []string{kind, crd.Spec.Names.ListKind} {
			if !scheme.Recognizes(v1alpha1.GroupVersion.WithKind(name)) {
				t.Errorf("the scheme lacks %s", name)
			}
		}
	}
}

// accepted are manifests that use every field.
var accepted = map[string]string{
	"a small Application":          application("api: shell, image: a, command: date"),
	"a command of several lines":   application(`api: shell, image: a, command: "cd /\ndate\n"`),
	"a torch command in a block":   application(`api: torch, image: a, command: "train.py\n", options: "--lr 1\n"`),
	"variables":                    application(`api: shell, image: a, command: b, env: {A: "", a.b-c_1: "$(x) 'ü'"}, envFrom: [{secretRef: {name: s}, prefix: P_}, {configMapRef: {name: c}}]`),
	"inputs":                       application(`api: shell, image: a, command: b, inputs: [{name: d, namespace: blue, useas: mount, mountPath: /data/}, {sizes: {xs: a, lg: b}, defaultSize: lg}]`),
	"everything of an Application": application(`api: torch, image: a, command: b, options: c, size: md, supportsGpu: true, imagePullSecret: s, securityContext: {runAsUser: 0, runAsGroup: 1, fsGroup: 2}, torch: {backend: JobSet}`),
	"an interactive cluster":       application(`api: ray, image: a, options: "", requirements: []`),
	"everything of ray":            application(`api: ray, image: a, command: "b\nc", options: "d\ne", requirements: ["torch>=2; python_version < '3.12'", "$(x) é"], ray: {headResources: {cpu: 0, memory: 1Gi}}`),
	"a work queue":                 application("api: workqueue, image: a, command: b"),
	"everything of a work queue":   application(`api: workqueue, image: a, command: b, workqueue: {maxAttempts: 20, taskTimeoutSeconds: 60, leaseSeconds: 600}`),
	"a Run of tasks":               run("digits-1", ", queue: {dataset: {name: d}}"),
	"everything of a Run of tasks": run("digits-1", ", inbox: ., queue: {dataset: {name: d}, open: true, maxFailed: 3}"),
	"tasks in a folder":            run("digits-1", ", inbox: a/b..c, queue: {dataset: {name: d}}"),
	"data of a claim":              dataSet("pvc: {claimName: c, subPath: a/..b/c}, readOnly: true"),
	"data of a server":             dataSet("nfs: {server: nfs.example.com, path: /a}"),
	"data of a bucket":             dataSet("s3: {endpoint: 'https://s3.example.com:9000/', bucket: abc}"),
	"everything of a bucket":       dataSet("s3: {endpoint: 'http://a', bucket: a-b.c, prefix: a/../b, region: eu-west-1, secretName: s, copyLimit: 1.5Ti}, readOnly: true"),
	"an input of variables":        application(`api: shell, image: a, command: b, inputs: [{name: d, useas: configmap}]`),
	"a small Run":                  run("digits-1", ""),
	"everything of a Run":          run("digits-1", `, options: "", env: {A: b}, envFrom: [{secretRef: {name: s}}], size: md, workers: 10000, resources: {cpu: 8, memory: 1.5Gi, nvidia.com/gpu: "8", hugepages-2Mi: 4Mi}, supportsGpu: true, priority: high, input: lg, queueName: default-queue`),
	"a Run of no workers":          run("digits-1", ", workers: 0"),
	"a Run with a long name":       run(strings.Repeat("a", 63), ""),
	"amounts":                      sizes(`config: {a: {workers: 0, cpu: "+1", memory: .5Gi, gpu: 0}, b: {workers: 0, cpu: 0, memory: 1e3, gpu: 0}}`),
	"sizes":                        sizes(`priority: -1, config: {md: {workers: 4, cpu: 2, memory: 16Gi, gpu: 1}, Huge 1: {workers: 1, cpu: 500m, memory: "0", gpu: 0, resources: {nvidia.com/roce_gdr: 1}, nodeSelector: {a: b}}}`),
}

func TestTheAPIServerAccepts(t *testing.T) {
	schema := compiled(t)
	for name, manifest := range accepted {
		t.Run(name, func(t *testing.T) {
			if _, err := schema.Create(object(t, manifest)); err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheAPIServerRefuses(t *testing.T) {
	schema := compiled(t)
	sentences := map[string]bool{}
	for name, row := range map[string]struct{ manifest, says string }{
		"a kind that we do not have":       {`{apiVersion: codeflare.dev/v1alpha1, kind: Runner}`, "codeflare.dev has no kind Runner: use Application, DataSet, Run or RunSizeConfiguration"},
		"another version":                  {`{apiVersion: codeflare.dev/v1, kind: Run}`, "there is no version codeflare.dev/v1: use codeflare.dev/v1alpha1"},
		"an unknown field":                 {application("api: shell, image: a, comand: b"), "spec.comand is an unknown field"},
		"an unknown field of metadata":     {`{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: a, lables: {}}, spec: {application: {name: a}}}`, `metadata: unknown field "lables"`},
		"no name":                          {`{apiVersion: codeflare.dev/v1alpha1, kind: Application, spec: {api: shell, image: a, command: b}}`, "metadata.name: Required value"},
		"a Run without a name":             {`{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {}, spec: {application: {name: a}}}`, "metadata.name: Required value"},
		"a name of no object":              {strings.Replace(application("api: shell, image: a, command: b"), "digits", "Digits_1", 1), "metadata.name: a lowercase RFC 1123 subdomain must consist of"},
		"an annotation of no name":         {strings.Replace(run("a", ""), "name: a", "name: a, annotations: {a/b/c: d}", 1), "metadata.annotations: a valid label key must consist of"},
		"a namespace of sizes":             {strings.Replace(sizes("config: {a: {workers: 1, cpu: 1, memory: 1, gpu: 1}}"), "name: a", "name: a, namespace: b", 1), "metadata.namespace: Forbidden: RunSizeConfiguration has no namespace"},
		"no spec":                          {`{apiVersion: codeflare.dev/v1alpha1, kind: Application, metadata: {name: a}}`, "spec: Required value"},
		"an Application of no api":         {application("image: a, command: b"), "spec.api: Required value"},
		"an api of 2023":                   {application("api: kubeflow, image: a, command: b"), "spec.api: api must be torch, ray, workqueue, workflow, shell or sequence; what was kubeflow is a workflow now"},
		"a work queue of no command":       {application("api: workqueue, image: a"), "spec: a workqueue Application needs a command"},
		"a work queue of no image":         {application("api: workqueue, command: a"), "spec: a workqueue Application needs an image"},
		"the block of a work queue":        {application("api: shell, image: a, command: b, workqueue: {}"), "spec: the block workqueue is for api workqueue"},
		"tasks that are never tried":       {application("api: workqueue, image: a, command: b, workqueue: {maxAttempts: 0}"), "spec.workqueue.maxAttempts: should be greater than or equal to 1"},
		"tasks that are tried for long":    {application("api: workqueue, image: a, command: b, workqueue: {maxAttempts: 21}"), "spec.workqueue.maxAttempts: should be less than or equal to 20"},
		"a lease of a moment":              {application("api: workqueue, image: a, command: b, workqueue: {leaseSeconds: 9}"), "spec.workqueue.leaseSeconds: should be greater than or equal to 10"},
		"a lease of an hour":               {application("api: workqueue, image: a, command: b, workqueue: {leaseSeconds: 3600}"), "spec.workqueue.leaseSeconds: should be less than or equal to 600"},
		"a queue of no DataSet":            {run("a", ", queue: {open: true}"), "spec.queue.dataset: Required value"},
		"a queue of a nameless DataSet":    {run("a", ", queue: {dataset: {}}"), "spec.queue.dataset.name: Required value"},
		"fewer failures than none":         {run("a", ", queue: {dataset: {name: a}, maxFailed: -1}"), "spec.queue.maxFailed: should be greater than or equal to 0"},
		"an inbox of the root":             {run("a", ", inbox: /in"), "spec.inbox: inbox is a folder of the DataSet: without .. and without / at the beginning or the end"},
		"an inbox that is elsewhere":       {run("a", ", inbox: a/../.."), "spec.inbox: inbox is a folder of the DataSet: without .. and without / at the beginning or the end"},
		"an inbox of results":              {run("a", ", inbox: outbox/a"), "spec.inbox: inbox is another folder than those of the results, outbox and .mlbatch-queue"},
		"an inbox in the record":           {run("a", ", inbox: .mlbatch-queue"), "spec.inbox: inbox is another folder than those of the results, outbox and .mlbatch-queue"},
		"torch of no image":                {application("api: torch, command: b"), "spec: a torch Application needs an image"},
		"shell of no image":                {application(`api: shell, command: b, image: ""`), "spec: a shell Application needs an image"},
		"torch of no command":              {application("api: torch, image: b"), "spec: a torch Application needs a command"},
		"shell of a blank command":         {application(`api: shell, image: b, command: " \n"`), "spec: a shell Application needs a command"},
		"a workflow of nothing":            {application("api: workflow"), "spec: a workflow Application needs the block workflow, which others do not have"},
		"a workflow of no steps":           {workflow(""), "spec.workflow.steps: should have at least 1 items"},
		"a sequence of nothing":            {application("api: sequence"), "spec: a sequence Application needs steps, which others do not have"},
		"a sequence of no steps":           {application("api: sequence, steps: []"), "spec.steps: should have at least 1 items"},
		"a sequence of 33 steps":           {application("api: sequence, steps: [" + strings.Repeat("a, ", 33) + "]"), "spec.steps: Too many: 33: must have at most 32 items"},
		"a sequence with a block":          {application("api: sequence, steps: [a], workflow: {steps: [{name: a, application: {name: a}}]}"), "spec: a workflow Application needs the block workflow, which others do not have"},
		"a step of no name":                {workflow("{application: {name: a}}"), "spec.workflow.steps[0].name: Required value"},
		"a step of no Application":         {workflow("{name: a}"), "spec.workflow.steps[0].application: Required value"},
		"a step with a long name":          {workflow("{name: " + strings.Repeat("a", 31) + ", application: {name: a}}"), "spec.workflow.steps[0].name: Too long: may not be more than 30 bytes"},
		"a step with an uppercase name":    {workflow("{name: A, application: {name: a}}"), "spec.workflow.steps[0].name: the name of a step is lower-case letters, digits and dashes, because pods are named after it"},
		"two steps of one name":            {workflow("{name: a, application: {name: a}}, {name: a, application: {name: b}}"), "spec.workflow.steps: each step has a name of its own"},
		"a step that waits for itself":     {workflow("{name: a, application: {name: a}, dependsOn: [a]}"), "spec.workflow.steps: dependsOn names other steps of the workflow"},
		"a step that waits for nobody":     {workflow("{name: a, application: {name: a}, dependsOn: [b]}"), "spec.workflow.steps: dependsOn names other steps of the workflow"},
		"a step for another occasion":      {workflow("{name: a, application: {name: a}, when: Sometimes}"), `spec.workflow.steps[0].when: Unsupported value: "Sometimes"`},
		"a step that is never given up":    {workflow("{name: a, application: {name: a}, retries: 21}"), "spec.workflow.steps[0].retries: should be less than or equal to 20"},
		"a block of another api":           {application("api: shell, image: a, command: b, torch: {backend: JobSet}"), "spec: the block torch is for api torch"},
		"ray of no image":                  {application("api: ray, command: b"), "spec: a ray Application needs an image"},
		"the block of ray":                 {application("api: shell, image: a, command: b, ray: {}"), "spec: the block ray is for api ray"},
		"requirements of another api":      {application("api: torch, image: a, command: b, requirements: [c]"), "spec: requirements are for api ray: for others, put the packages into the image"},
		"requirements of no command":       {application("api: ray, image: a, requirements: [c]"), "spec: a ray Application without a command is an interactive cluster, which takes neither options nor requirements"},
		"options of no command":            {application(`api: ray, image: a, command: " ", options: c`), "spec: a ray Application without a command is an interactive cluster, which takes neither options nor requirements"},
		"requirements of two lines":        {application(`api: ray, image: a, command: b, requirements: ["c\nd"]`), "spec.requirements[0]: a requirement is one line of a requirements file, without control characters"},
		"a blank requirement":              {application(`api: ray, image: a, command: b, requirements: [" "]`), "spec.requirements[0]: a requirement is one line of a requirements file, without control characters"},
		"65 requirements":                  {application("api: ray, image: a, command: b, requirements: [c" + strings.Repeat(", c", 64) + "]"), "spec.requirements: Too many: 65: must have at most 64 items"},
		"a head of less than nothing":      {application("api: ray, image: a, ray: {headResources: {cpu: -1}}"), "spec.ray.headResources[cpu]: an amount is not negative"},
		"another backend":                  {application("api: torch, image: a, command: b, torch: {backend: MPIJob}"), `spec.torch.backend: Unsupported value: "MPIJob": supported values: "PyTorchJob", "JobSet"`},
		"a torch command of two lines":     {application(`api: torch, image: a, command: "b\nc"`), "spec: the command of a torch Application is one line, because torchrun starts it: put more into a script"},
		"torch options of two lines":       {application(`api: torch, image: a, command: b, options: "c\nd"`), "spec: the options of a torch Application are one line, because torchrun gets them"},
		"a command of 33 KiB":              {application("api: shell, image: a, command: " + strings.Repeat("b", 33<<10)), "spec.command: Too long: may not be more than 32768 bytes"},
		"a variable of the platform":       {application("api: shell, image: a, command: b, env: {CODEFLARE_RUN: a}"), "spec.env: names that begin with CODEFLARE_ are the platform's"},
		"a variable with a blank":          {application("api: shell, image: a, command: b, env: {a b: a}"), "spec.env: the name of a variable has letters, digits, _, - and dots only, and does not begin with a digit"},
		"a variable of a number":           {application("api: shell, image: a, command: b, env: {A: 1}"), `spec.env.A: Invalid value: "integer": spec.env.A in body must be of type string: "integer"`},
		"an input of nothing":              {application("api: shell, image: a, command: b, inputs: [{mountPath: /a}]"), "spec.inputs[0]: an input has either a name or sizes"},
		"an input of both":                 {application("api: shell, image: a, command: b, inputs: [{name: a, sizes: {xs: a}}]"), "spec.inputs[0]: an input has either a name or sizes"},
		"a default that is no size":        {application("api: shell, image: a, command: b, inputs: [{sizes: {xs: a}, defaultSize: lg}]"), "spec.inputs[0]: defaultSize is one of the input's sizes"},
		"a default without sizes":          {application("api: shell, image: a, command: b, inputs: [{name: a, defaultSize: lg}]"), "spec.inputs[0]: defaultSize is one of the input's sizes"},
		"a use of nothing":                 {application("api: shell, image: a, command: b, inputs: [{name: a, useas: file}]"), `spec.inputs[0].useas: Unsupported value: "file": supported values: "mount", "configmap"`},
		"a folder of variables":            {application("api: shell, image: a, command: b, inputs: [{name: a, useas: configmap, mountPath: /a}]"), "spec.inputs[0]: mountPath is for data that is mounted: leave it out, or let useas be mount"},
		"a mount in no folder":             {application("api: shell, image: a, command: b, inputs: [{name: a, mountPath: data}]"), "spec.inputs[0].mountPath: mountPath begins with /, is not the root, and has no colon and no .."},
		"a mount of the root":              {application("api: shell, image: a, command: b, inputs: [{name: a, mountPath: //}]"), "spec.inputs[0].mountPath: mountPath begins with /, is not the root, and has no colon and no .."},
		"a mount with a colon":             {application("api: shell, image: a, command: b, inputs: [{name: a, mountPath: '/a:b'}]"), "spec.inputs[0].mountPath: mountPath begins with /, is not the root, and has no colon and no .."},
		"a mount of the root, hidden":      {application("api: shell, image: a, command: b, inputs: [{name: a, mountPath: /..}]"), "spec.inputs[0].mountPath: mountPath begins with /, is not the root, and has no colon and no .."},
		"an image with a blank":            {application("api: shell, image: 'a ', command: b"), "spec.image: the name of an image has no blanks"},
		"code of two places":               {application("api: shell, image: a, command: b, repo: a, code: [{name: a, source: b}]"), "spec: code comes from repo or from code, not from both"},
		"a Secret of no repository":        {application("api: shell, image: a, command: b, repoSecret: {name: a}"), "spec: repoSecret is for repo: add it"},
		"code in a folder":                 {application("api: shell, image: a, command: b, code: [{name: a/b, source: b}]"), "spec.code[0].name: the name of a file of code has letters, digits, dots, - and _ only"},
		"code above its folder":            {application("api: shell, image: a, command: b, code: [{name: .., source: b}]"), "spec.code[0].name: the name of a file of code has letters, digits, dots, - and _ only"},
		"two files of a name":              {application("api: shell, image: a, command: b, code: [{name: a, source: b}, {name: a, source: c}]"), "spec.code: each file of code has a name of its own"},
		"variables from nowhere":           {application("api: shell, image: a, command: b, envFrom: [{prefix: a}]"), "spec.envFrom: each of envFrom names either a ConfigMap (configMapRef) or a Secret (secretRef)"},
		"variables from a nameless Secret": {run("a", ", envFrom: [{secretRef: {}}]"), "spec.envFrom: each of envFrom names either a ConfigMap (configMapRef) or a Secret (secretRef)"},
		"variables from two places":        {run("a", ", envFrom: [{secretRef: {name: a}, configMapRef: {name: b}}]"), "spec.envFrom: each of envFrom names either a ConfigMap (configMapRef) or a Secret (secretRef)"},
		"a user below root":                {application("api: shell, image: a, command: b, securityContext: {runAsUser: -1}"), "spec.securityContext.runAsUser: should be greater than or equal to 0"},
		"data of nowhere":                  {dataSet("readOnly: true"), "spec: a DataSet has exactly one of pvc, nfs and s3"},
		"data of two places":               {dataSet("pvc: {claimName: c}, nfs: {server: s, path: /}"), "spec: a DataSet has exactly one of pvc, nfs and s3"},
		"a bucket of no server":            {dataSet("s3: {endpoint: a, bucket: abc}"), "spec.s3.endpoint: the endpoint of s3 is http://HOST or https://HOST, with a port if it needs one"},
		"a bucket of a folder":             {dataSet("s3: {endpoint: 'http://a/b', bucket: abc}"), "spec.s3.endpoint: the endpoint of s3 is http://HOST or https://HOST, with a port if it needs one"},
		"keys in an endpoint":              {dataSet("s3: {endpoint: 'http://a:b@c', bucket: abc}"), "spec.s3.endpoint: the endpoint of s3 is http://HOST or https://HOST, with a port if it needs one"},
		"no bucket":                        {dataSet("s3: {endpoint: 'http://a'}"), "spec.s3.bucket: Required value"},
		"a bucket of no name":              {dataSet("s3: {endpoint: 'http://a', bucket: A/b}"), "spec.s3.bucket: a bucket's name has 3 to 63 lower-case letters, digits, dashes and dots"},
		"a prefix of the root":             {dataSet("s3: {endpoint: 'http://a', bucket: abc, prefix: /b}"), "spec.s3.prefix: the prefix of s3 is a folder of the bucket: without / at the beginning"},
		"a negative limit":                 {dataSet("s3: {endpoint: 'http://a', bucket: abc, copyLimit: -1}"), "spec.s3.copyLimit: an amount is not negative"},
		"a server's path that is relative": {dataSet("nfs: {server: s, path: a}"), "spec.nfs.path: the path of nfs begins with /"},
		"a way out of a claim":             {dataSet("pvc: {claimName: c, subPath: a/../..}"), "spec.pvc.subPath: subPath is a path below the claim's root: without .. and without / at the beginning"},
		"a Run with an uppercase name":     {run("Digits", ""), "metadata.name: a lowercase RFC 1123 subdomain"},
		"a Run with a dot":                 {run("digits.1", ""), "a Run's name is lower-case letters, digits and dashes, at most 63, and begins with a letter, because pods are named after it"},
		"a Run that begins with a digit":   {run("1-digits", ""), "a Run's name is lower-case letters"},
		"a Run with too long a name":       {run(strings.Repeat("a", 64), ""), "a Run's name is lower-case letters"},
		"a Run of nothing":                 {`{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: a}, spec: {}}`, "spec.application: Required value"},
		"a Run of a nameless Application":  {`{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: a}, spec: {application: {}}}`, "spec.application.name: Required value"},
		"fewer workers than none":          {run("a", ", workers: -1"), "spec.workers: should be greater than or equal to 0"},
		"more workers than ever":           {run("a", ", workers: 10001"), "spec.workers: should be less than or equal to 10000"},
		"another priority":                 {run("a", ", priority: system-node-critical"), `spec.priority: Unsupported value: "system-node-critical": supported values: "low", "normal", "high"`},
		"negative resources":               {run("a", `, resources: {memory: "-1Gi"}`), "spec.resources[memory]: an amount is not negative and has at most 15 digits before the point"},
		"negative numbers":                 {run("a", `, resources: {cpu: -1}`), "spec.resources[cpu]: an amount is not negative and has at most 15 digits before the point"},
		"resources of no amount":           {run("a", `, resources: {cpu: many}`), "spec.resources.cpu: should match"},
		"an exponent with a point":         {run("a", `, resources: {cpu: "1e1.5"}`), "spec.resources[cpu]: an amount is not negative and has at most 15 digits before the point"},
		"an exponent without end":          {run("a", `, resources: {cpu: "1e2000000000"}`), "spec.resources[cpu]: an amount is not negative and has at most 15 digits before the point"},
		"an amount of many digits":         {run("a", `, resources: {cpu: "`+strings.Repeat("9", 33)+`"}`), "spec.resources.cpu: Too long: may not be more than 32 bytes"},
		"a number of many digits":          {sizes("config: {a: {workers: 1, cpu: 1000000000000001, memory: 1Gi, gpu: 1}}"), "spec.config[a].cpu: an amount is not negative and has at most 15 digits before the point"},
		"resources of no domain":           {run("a", `, resources: {gpu: 1}`), "spec.resources: a resource is cpu, memory, ephemeral-storage, hugepages-SIZE, or has a domain, such as nvidia.com/gpu"},
		"a queue of no name":               {run("a", `, queueName: ""`), "spec.queueName: queueName is the name of a LocalQueue"},
		"a deadline before the start":      {run("a", `, activeDeadlineSeconds: 0`), "spec.activeDeadlineSeconds: should be greater than or equal to 1"},
		"a Run deleted before its end":     {run("a", `, ttlSecondsAfterFinished: -1`), "spec.ttlSecondsAfterFinished: should be greater than or equal to 0"},
		"no sizes":                         {sizes("config: {}"), "spec.config: should have at least 1 properties"},
		"a size without memory":            {sizes("config: {a: {workers: 1, cpu: 1, gpu: 1}}"), "spec.config.a.memory: Required value"},
		"a size of negative cpu":           {sizes("config: {a: {workers: 1, cpu: -1, memory: 1Gi, gpu: 1}}"), "spec.config[a].cpu: an amount is not negative and has at most 15 digits before the point"},
		"a size of negative memory":        {sizes("config: {a: {workers: 1, cpu: 1, memory: '-1Gi', gpu: 1}}"), "spec.config[a].memory: an amount is not negative and has at most 15 digits before the point"},
		"a size with cpu twice":            {sizes("config: {a: {workers: 1, cpu: 1, memory: 1Gi, gpu: 1, resources: {cpu: 1}}}"), "spec.config[a].resources: cpu and memory of a size are fields of their own"},
		"a size of negative GPUs":          {sizes("config: {a: {workers: 1, cpu: 1, memory: 1Gi, gpu: -1}}"), "spec.config.a.gpu: should be greater than or equal to 0"},
	} {
		sentences[row.says] = true
		t.Run(name, func(t *testing.T) {
			_, err := schema.Create(object(t, row.manifest))
			if err == nil || !strings.HasPrefix(err.Error(), row.says) || strings.Contains(err.Error(), "; spec") {
				t.Errorf("got %v\nwant %s", err, row.says)
			}
		})
	}
	if len(sentences) < 50 {
		t.Errorf("there are %d sentences, and issue 13 wants 50", len(sentences))
	}
}

func TestDefaults(t *testing.T) {
	schema := compiled(t)
	for path, row := range map[string]struct{ manifest, want string }{
		"spec.priority":      {run("a", ""), "normal"},
		"spec.torch.backend": {application("api: torch, image: a, command: b, torch: {}"), "PyTorchJob"},
	} {
		stored, err := schema.Create(object(t, row.manifest))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedString(stored.Object, strings.Split(path, ".")...); got != row.want {
			t.Errorf("%s is %q and not %q", path, got, row.want)
		}
	}
}

// changes set each field of a Run that the stored one does not have.
var changes = map[string]string{
	"env": "{A: b}", "envFrom": "[{secretRef: {name: a}}]", "size": "md", "workers": "1", "resources": "{cpu: 1}", "supportsGpu": "true",
	"priority": "high", "input": "md", "queueName": "a", "activeDeadlineSeconds": "1", "ttlSecondsAfterFinished": "1", "cancel": "true",
	"inbox": "a", "queue": "{dataset: {name: a}}",
}

// mayChange are the fields that say when a Run ends.
var mayChange = map[string]bool{"cancel": true, "ttlSecondsAfterFinished": true}

func TestARunCannotBeChanged(t *testing.T) {
	schema := compiled(t)
	old := object(t, run("a", ", options: b"))
	if err := schema.Update(object(t, strings.Replace(run("a", ", options: b"), "name: a", "name: a, labels: {c: d}", 1)), old); err != nil {
		t.Errorf("labels cannot be changed: %v", err)
	}
	refused := func(change, want string) {
		t.Helper()
		if err := schema.Update(object(t, run("a", change)), old); err == nil || err.Error() != "spec: "+want {
			t.Errorf("after %q got %v", change, err)
		}
	}
	const fixed = "a Run cannot be changed but for cancel and ttlSecondsAfterFinished: make another one"
	refused("", fixed)
	for field, value := range changes {
		if may := schema.Update(object(t, run("a", ", options: b, "+field+": "+value)), old) == nil; may != mayChange[field] {
			t.Errorf("%s can be set later: %t", field, may)
		}
	}
	refused(", options: c", fixed)
	for field := range crds(t)[v1alpha1.RunKind].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
		if changes[field] == "" && field != "application" && field != "options" {
			t.Errorf("it is not tried whether %s can be changed", field)
		}
	}
	old = object(t, run("a", ", cancel: true"))
	refused("", "a Run that was cancelled stays so: make another one")
	refused(", cancel: false", "a Run that was cancelled stays so: make another one")
	if err := schema.Update(object(t, application("api: shell, image: a, command: c")), object(t, application("api: shell, image: a, command: b"))); err != nil {
		t.Errorf("an Application cannot be changed: %v", err)
	}
}

func workflow(steps string) string {
	return application("api: workflow, workflow: {steps: [" + steps + "]}")
}

func application(spec string) string {
	return `{apiVersion: codeflare.dev/v1alpha1, kind: Application, metadata: {name: digits}, spec: {` + spec + `}}`
}

func dataSet(spec string) string {
	return `{apiVersion: codeflare.dev/v1alpha1, kind: DataSet, metadata: {name: pictures}, spec: {` + spec + `}}`
}

func run(name, spec string) string {
	return `{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: ` + name + `}, spec: {application: {name: digits}` + spec + `}}`
}

func sizes(spec string) string {
	return `{apiVersion: codeflare.dev/v1alpha1, kind: RunSizeConfiguration, metadata: {name: a}, spec: {` + spec + `}}`
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(manifest), &o.Object); err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	// The API server reads numbers as integers where they are.
	text, err := o.MarshalJSON()
	if err == nil {
		err = o.UnmarshalJSON(text)
	}
	if err != nil && o.GetKind() != "" {
		t.Fatal(err)
	}
	return o
}
