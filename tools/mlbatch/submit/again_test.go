// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/wording"
)

// stored is the AppWrapper that a cluster has after a job was submitted.
func stored(t *testing.T, job Job) *v1beta2.AppWrapper {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	if err := job.In("blue", ""); err != nil {
		t.Fatal(err)
	}
	if err := job.Create(t.Context(), c, io.Discard); err != nil {
		t.Fatal(err)
	}
	aw := &v1beta2.AppWrapper{}
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(job.AppWrapper()), aw); err != nil {
		t.Fatal(err)
	}
	return aw
}

// What is made again is what the user would have submitted with this setting: also a copy of a copy.
func TestAJobIsMadeAgainWithOtherSettings(t *testing.T) {
	folder := write(t, map[string]string{"src/train.py": "print(1)", "lib/binary": "\xff\xfe", "a.py": ""})
	array, err := ParseArray("3-9%2")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Program{
		"a script":  {Script: filepath.Join(folder, "src/train.py"), Arguments: []string{"--lr", "it's"}},
		"a folder":  {Script: filepath.Join(folder, "src/train.py"), Folder: folder},
		"an array":  {Script: filepath.Join(folder, "src/train.py"), Array: array},
		"no script": {},
	} {
		make := func(settings map[string]any) (Job, error) {
			if p.Script == "" {
				return New("0.0.1", settings)
			}
			return p.Job("0.0.1", settings)
		}
		settings := map[string]any{"containerImage": "a", "jobName": "train", "environmentVariables": []any{map[string]any{"name": "A", "value": "b"}}, "numCpusPerPod": int64(12000000)}
		if p.Script == "" {
			settings["mainProgram"] = "train.py"
		}
		first, err := make(settings)
		if err != nil {
			t.Fatal(err)
		}
		old := stored(t, first)
		for _, row := range []struct{ name, gpus string }{{"train-2", "2"}, {"train-3", "4"}} {
			again, err := Again("0.0.1", old, row.name, []string{"numGpusPerPod=" + row.gpus})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			settings["jobName"], settings["numGpusPerPod"] = row.name, Value(row.gpus)
			want, err := make(settings)
			if err != nil {
				t.Fatal(err)
			}
			if err := want.In("blue", ""); err != nil || again.Manifest != want.Manifest || !strings.Contains(again.Manifest, "nvidia.com/gpu") {
				t.Errorf("%s, %s: %v: got %s, want %s", name, row.name, err, again.Manifest, want.Manifest)
			}
			old = again.AppWrapper()
		}
	}
}

func TestWhatCannotBeMadeAgainIsASentence(t *testing.T) {
	script := filepath.Join(write(t, map[string]string{"train.py": "x"}), "train.py")
	job, err := Program{Script: script}.Job("0.0.1", map[string]any{"containerImage": "a", "jobName": "train"})
	if err != nil {
		t.Fatal(err)
	}
	for want, row := range map[string]struct {
		set    string
		change func(*v1beta2.AppWrapper)
	}{
		"AppWrapper train does not say of which settings it was made, as those of 'mlbatch submit' do: change its manifest": {"a=b", func(aw *v1beta2.AppWrapper) { aw.Annotations = nil }},
		"AppWrapper train does not carry its script any more: submit the script again":                                      {"a=b", func(aw *v1beta2.AppWrapper) { aw.Spec.Components = aw.Spec.Components[1:] }},
		"AppWrapper train does not carry train.py any more: submit the script again": {"a=b", func(aw *v1beta2.AppWrapper) {
			aw.Spec.Components[0].Template.Raw = []byte(strings.ReplaceAll(string(aw.Spec.Components[0].Template.Raw), "000.train.py", "other"))
		}},
		"cannot read --set numPods: ":                    {"numPods", nil},
		"the copy is called train-2: leave jobName out":  {"jobName=mine", nil},
		"mainProgram, but the job runs train.py: remove": {"mainProgram=x", nil},
		"numPodz": {"numPodz=2", nil},
	} {
		aw := stored(t, job)
		if row.change != nil {
			row.change(aw)
		}
		_, err := Again("0.0.1", aw, "train-2", []string{row.set})
		wording.OneSentence(t, "", err, want)
	}
}

// What is submitted stays far below what an object may have.
func TestALargeRecipeIsNotKept(t *testing.T) {
	job, err := New("0.0.1", map[string]any{"containerImage": "a", "jobName": "train", "mainProgram": strings.Repeat("x", mostRecipe)})
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := stored(t, job).Annotations[RecipeAnnotation]; kept {
		t.Error("it is kept")
	}
}
