// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

const (
	app = `{apiVersion: codeflare.dev/v1alpha1, kind: Application, metadata: {name: survey}, spec: {api: shell, image: a, command: date}}`
	run = `{apiVersion: codeflare.dev/v1alpha1, kind: Run, metadata: {name: survey-1}, spec: {application: {name: survey}}}`
)

// file is a file with some documents.
func file(t *testing.T, documents ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(name, []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// in is a manifest with a namespace.
func in(namespace, manifest string) string {
	return strings.Replace(manifest, "{name: survey", "{namespace: "+namespace+", name: survey", 1)
}

func planned(t *testing.T, namespace string, files ...string) (plans []runs.Plan, notes []string, err error) {
	t.Helper()
	manifests, err := runs.Read(files, strings.NewReader(run), namespace)
	if err != nil {
		return nil, nil, err
	}
	return manifests.Plan()
}

func TestManifestsMayBeInOneFileOrMore(t *testing.T) {
	sizes := `{apiVersion: codeflare.dev/v1alpha1, kind: RunSizeConfiguration, metadata: {name: a}, spec: {config: {sm: {workers: 7, cpu: 1, memory: 1Gi, gpu: 0}}}}`
	for name, files := range map[string][]string{
		"one file, with empty documents":    {file(t, "# why", app, "", run, sizes)},
		"a file each, whatever their order": {file(t, run), file(t, sizes), file(t, app)},
		"standard input":                    {file(t, app, sizes), "-"},
		"with a line that begins it":        {file(t, "---\n"+app, run+"\n---", sizes)},
	} {
		t.Run(name, func(t *testing.T) {
			plans, notes, err := planned(t, "blue", files...)
			if err != nil || len(plans) != 1 || len(notes) > 0 {
				t.Fatalf("got %d plans, %q, %v", len(plans), notes, err)
			}
			if p := plans[0]; p.AppWrapper.Namespace != "blue" || p.AppWrapper.Name != "survey-1" || p.Size.Workers != 7 {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	misspelt := strings.Replace(run, "{name: survey-1", "{annotations: {workload.codeflare.dev.appwrapper/retryLimits: '1'}, name: survey-1", 1)
	claim := `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: pictures}}`
	_, notes, err := planned(t, "", file(t, claim, app, misspelt))
	want := []string{
		"PersistentVolumeClaim pictures is not of codeflare.dev and was not looked at",
		"the files have no RunSizeConfiguration: the default sizes are used",
		"Run survey-1: metadata.annotations[workload.codeflare.dev.appwrapper/retryLimits] is unknown and has no effect: did you mean retryLimit?",
	}
	if diff := cmp.Diff(want, notes); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestWhatCannotBePlannedIsOneSentence(t *testing.T) {
	for name, row := range map[string]struct {
		files []string
		says  string
	}{
		"no file":               {[]string{"/no/such/file"}, "cannot read the manifests: open /no/such/file"},
		"no Run":                {[]string{file(t, app)}, "there is no Run in "},
		"no YAML":               {[]string{file(t, app, "a: b: c")}, "cannot read document 2: yaml: mapping values are not allowed in this context"},
		"a key twice":           {[]string{file(t, "{a: 1, a: 2}")}, `key "a" is there twice: remove one`},
		"no object":             {[]string{file(t, "[1]")}, "cannot read document 1: it is no Kubernetes object: it needs apiVersion, kind and metadata"},
		"no kind":               {[]string{file(t, "{apiVersion: v1}")}, "cannot read document 1: it is no Kubernetes object"},
		"an unknown field":      {[]string{file(t, strings.Replace(app, "image", "imgae", 1), run)}, "Application survey: spec.imgae is an unknown field"},
		"a rule":                {[]string{file(t, app, strings.Replace(run, "survey-1", "1-survey", 1))}, "Run 1-survey: a Run's name is lower-case letters"},
		"an object twice":       {[]string{file(t, app, run, run)}, "Run survey-1: it is there twice: remove one"},
		"a Run without a name":  {[]string{file(t, app, strings.Replace(run, "name: survey-1", "generateName: survey-", 1))}, "a cluster would generate its name: set metadata.name to plan it"},
		"no Application":        {[]string{file(t, run)}, "Run survey-1: there is no Application survey yet"},
		"two namespaces":        {[]string{file(t, in("red", app), in("blue", run))}, "Run survey-1: there is no Application survey in namespace blue yet"},
		"two Runs, both wrong":  {[]string{file(t, run, strings.Replace(run, "survey-1", "survey-2", 1))}, "yet; Run survey-2: there is no Application survey yet"},
		"one Run of two, wrong": {[]string{file(t, app, run, strings.NewReplacer("survey-1", "survey-2", "}}}", "}, size: huge}}").Replace(run))}, "Run survey-2: there is no size huge; there are: lg, md, sm, xl, xs, xxl, xxs"},
	} {
		t.Run(name, func(t *testing.T) {
			plans, _, err := planned(t, "", row.files...)
			if wording.OneSentence(t, "", err, row.says); len(plans) > 0 {
				t.Errorf("%d Runs are planned nevertheless", len(plans))
			}
		})
	}
}

// DataSets of another namespace have the same names.
func TestDataIsOfTheRunsNamespace(t *testing.T) {
	withData := strings.Replace(app, "command: date", "command: date, inputs: [{name: survey}]", 1)
	dataSet := `{apiVersion: codeflare.dev/v1alpha1, kind: DataSet, metadata: {name: survey}, spec: {pvc: {claimName: CLAIM}}}`
	plans, _, err := planned(t, "blue", file(t, withData, run, in("red", strings.Replace(dataSet, "CLAIM", "red", 1)), strings.Replace(dataSet, "CLAIM", "blue", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(plans[0].AppWrapper.Spec.Components[0].Template.Raw); !strings.Contains(got, `"claimName":"blue"`) || strings.Contains(got, "red") {
		t.Errorf("got %s", got)
	}
}

// What is printed can be given to kubectl, and is admitted.
func TestBothFormatsAreManifests(t *testing.T) {
	plans, _, err := planned(t, "", file(t, app, run, strings.Replace(run, "survey-1", "survey-2", 1)))
	if err != nil || len(plans) != 2 {
		t.Fatalf("got %d plans: %v", len(plans), err)
	}
	var inYAML, inJSON bytes.Buffer
	if err := errors.Join(runs.WriteYAML(&inYAML, plans), runs.WriteJSON(&inJSON, plans)); err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(inYAML.String(), "\n---\n")
	decoder := json.NewDecoder(&inJSON)
	for i, plan := range plans {
		var fromYAML, fromJSON v1beta2.AppWrapper
		if err := errors.Join(yaml.UnmarshalStrict([]byte(documents[i]), &fromYAML), decoder.Decode(&fromJSON)); err != nil {
			t.Fatal(err)
		}
		for _, read := range []v1beta2.AppWrapper{fromYAML, fromJSON} {
			if read.Name != plan.AppWrapper.Name || len(admissionrules.ValidateCreate(&read, admissionrules.DefaultLimits)) > 0 {
				t.Errorf("got %+v", read)
			}
		}
	}
	if err := decoder.Decode(&struct{}{}); !errors.Is(err, io.EOF) || len(documents) != 2 {
		t.Errorf("there is more than two AppWrappers: %v", err)
	}
	if want := "# Run survey-1: 2 workers of 1 cpu, 8Gi memory; no GPUs, because supportsGpu is not true on both\napiVersion"; !strings.HasPrefix(inYAML.String(), want) {
		t.Errorf("got %s", &inYAML)
	}
}

// The policies of team namespaces refuse owners that users name.
func TestAStoredRunIsPlannedWithoutAnOwner(t *testing.T) {
	plans, _, err := planned(t, "", file(t, app, strings.Replace(run, "name: survey-1", "name: survey-1, uid: u, resourceVersion: '1'", 1)))
	if err != nil || len(plans[0].AppWrapper.OwnerReferences) > 0 {
		t.Errorf("got %+v, %v", plans, err)
	}
}

// What fetches the code is of the same release as the command.
func TestTheSamplesArePlanned(t *testing.T) {
	files, err := filepath.Glob("../../../samples/codeflare/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if plans, _, err := planned(t, "blue", file); err != nil || len(plans) == 0 {
			t.Errorf("%s: %d plans, %v", file, len(plans), err)
		}
	}
	versions, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	plans, _, err := planned(t, "blue", "../../../samples/codeflare/code.yaml")
	if err != nil || !strings.Contains(string(plans[0].AppWrapper.Spec.Components[1].Template.Raw), `"image":"`+versions.AgentImage()+`"`) {
		t.Errorf("another agent fetches the code: %v", err)
	}
}
