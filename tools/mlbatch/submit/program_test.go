// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// write makes files in a new folder. A text that begins with -> is a link.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(name, []byte(text), 0o600)
		if target, link := strings.CutPrefix(text, "->"); link {
			_ = os.Remove(name)
			err = os.Symlink(target, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

var image = map[string]any{"containerImage": "a"}

// The job of a script, run as its container would: with a shell, and with what the ConfigMap has in place.
func TestAScriptRunsInACopyOfItsFolder(t *testing.T) {
	for name, row := range map[string]struct {
		script, folder string
		settings       map[string]any
		want           string
	}{
		"a shell script":          {script: "go.sh", want: "go.sh in go.sh with :"},
		"a shell script on GPUs":  {script: "go.sh", settings: map[string]any{"numGpusPerPod": int64(8), "numPods": int64(2)}, want: "go.sh in go.sh with :"},
		"with its folder":         {script: "go.sh", folder: ".", want: "go.sh in go.sh lib my train.py src with :"},
		"in a folder below":       {script: "src/go.sh", folder: ".", want: "src/go.sh in go.sh lib my train.py src with :"},
		"one process of Python":   {script: "my train.py", want: "python3 ./my train.py in my train.py with 0:"},
		"Python without any GPU":  {script: "my train.py", settings: map[string]any{"numGpusPerPod": int64(0)}, want: "python3 ./my train.py in my train.py with 0:"},
		"Python on several GPUs":  {script: "my train.py", settings: map[string]any{"numGpusPerPod": int64(2)}, want: "torchrun --nnodes=1 --node_rank=0 --nproc_per_node=2 --rdzv_id=101 --rdzv_endpoint=m:1 ./my train.py in my train.py with :"},
		"Python on several nodes": {script: "my train.py", settings: map[string]any{"numPods": int64(3)}, want: "torchrun --nnodes=1 --node_rank=0 --rdzv_id=101 --rdzv_endpoint=m:1 --nproc_per_node=1 ./my train.py in my train.py with :"},
		"after setup commands":    {script: "go.sh", settings: map[string]any{"setupCommands": []any{"echo first"}}, want: "first\ngo.sh in go.sh with :"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := write(t, map[string]string{
				"go.sh": show("go.sh"), "my train.py": "not read by this test", "lib/x.txt": "x", ".env": "PASSWORD=x", "lib/__pycache__/a.pyc": "x", ".git/HEAD": "x",
				"src/go.sh": show("src/go.sh"), "lib/binary": "\xff\xfe",
			})
			p := Program{Script: filepath.Join(folder, row.script), Arguments: []string{"--epochs", "3", "a  b", "it's", "$(HOME)", "", "two\nlines"}}
			if row.folder != "" {
				p.Folder = filepath.Join(folder, row.folder)
			}
			settings := map[string]any{"containerImage": "a", "jobName": "train"}
			for k, v := range row.settings {
				settings[k] = v
			}
			want := row.want + "\n<--epochs>\n<3>\n<a  b>\n<it's>\n<$(HOME)>\n<>\n<two\nlines>\n"
			if got := execute(t, p, settings); !strings.HasSuffix(got, want) {
				t.Errorf("it prints %s, and not %s", got, want)
			}
		})
	}
}

// show is a script that says where it runs, and with which arguments.
func show(name string) string {
	return `echo "` + name + ` in $(ls | tr '\n' ' ')with $LOCAL_RANK:"; for a; do echo "<$a>"; done`
}

// execute runs the first container of a job. Programs called python3 and torchrun show how they are called.
func execute(t *testing.T, p Program, settings map[string]any) string {
	t.Helper()
	j, err := p.Job("0.0.1", settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.In("", "blue"); err != nil {
		t.Fatal(err)
	}
	pod, files := inside(t, j.appWrapper)
	root := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), text, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	programs := write(t, map[string]string{
		"python3":  "#!/bin/sh\nname=$1; shift; " + show("python3 $name"),
		"torchrun": "#!/bin/sh\nwhile :; do case $1 in --*) o=\"$o $1\"; shift;; *) break;; esac; done; name=$1; shift; " + show("torchrun$o $name"),
	})
	for _, name := range []string{"python3", "torchrun"} {
		if err := os.Chmod(filepath.Join(programs, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Kubernetes makes one dollar of two.
	command := strings.ReplaceAll(pod.Spec.Containers[0].Command[2], "$$", "$")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, mounted, root))
	cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=m", "MASTER_PORT=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	return string(out)
}

// inside returns the first pod of a job, and what it sees of the files that the job carries.
func inside(t *testing.T, aw *v1beta2.AppWrapper) (*corev1.PodTemplateSpec, map[string][]byte) {
	t.Helper()
	carried, job := &corev1.ConfigMap{}, &unstructured.Unstructured{}
	for i, into := range []any{carried, job} {
		if err := json.Unmarshal(aw.Spec.Components[i].Template.Raw, into); err != nil {
			t.Fatal(err)
		}
	}
	pod, err := admissionrules.PodTemplate(job, "template.spec.pytorchReplicaSpecs.Master.template")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap == nil || v.ConfigMap.Name != carried.Name {
			continue
		}
		for _, item := range v.ConfigMap.Items {
			text, written := carried.Data[item.Key]
			content := []byte(text)
			if !written {
				content, written = carried.BinaryData[item.Key]
			}
			if !written {
				t.Errorf("the ConfigMap has no %s", item.Key)
			}
			files[item.Path] = content
		}
	}
	return &pod, files
}

func TestWhatAJobCarries(t *testing.T) {
	folder := write(t, map[string]string{
		"train.py": "print(1)", "lib/data.bin": "\xff\x00", "lib/.hidden/x": "x", ".env": "x", "lib/ä b.txt": "ä",
		"__pycache__/a.pyc": "x", "lib/b.pyc": "x", strings.Repeat("n", 250): "long",
	})
	j, err := Program{Script: filepath.Join(folder, "train.py"), Folder: folder}.Job("0.0.1", map[string]any{"containerImage": "a", "jobName": "train"})
	if err != nil {
		t.Fatal(err)
	}
	_, files := inside(t, j.appWrapper)
	want := map[string][]byte{"train.py": []byte("print(1)"), "lib/data.bin": {0xff, 0}, "lib/ä b.txt": []byte("ä"), strings.Repeat("n", 250): []byte("long")}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	carried := &corev1.ConfigMap{}
	if err := json.Unmarshal(j.appWrapper.Spec.Components[0].Template.Raw, carried); err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
	for name := range carried.Data {
		if !key.MatchString(name) {
			t.Errorf("%q is no key of a ConfigMap", name)
		}
	}
}

func TestWhatNoJobCanCarry(t *testing.T) {
	folder := write(t, map[string]string{
		"train.py": "x", "other/.x.py": "x", "other/x.pyc": "x", "other/.h/x.py": "x", "control": strings.Repeat("\x01", 400<<10), "big/train.py": "x", "big/data": strings.Repeat("x", mostBytes+1), "linked/train.py": "x", "linked/data": "->/etc/passwd",
		"other/x.py": "x", "loose": "->train.py",
	})
	many := map[string]string{"train.py": "x"}
	for i := range mostFiles {
		many[fmt.Sprint(i)] = ""
	}
	crowd := write(t, many)
	at := func(name string) string { return filepath.Join(folder, name) }
	for name, row := range map[string]struct {
		p        Program
		settings map[string]any
		says     string
	}{
		"no file":                 {p: Program{Script: at("none.py")}, says: "cannot read the program: "},
		"a folder":                {p: Program{Script: folder}, says: folder + " is a folder: name the script that runs, and its folder with --folder"},
		"a device":                {p: Program{Script: "/dev/null"}, says: "/dev/null is not a file: name the script that runs"},
		"outside its folder":      {p: Program{Script: at("train.py"), Folder: at("other")}, says: at("train.py") + " is not in the folder " + at("other") + ": name a folder that has it"},
		"no folder":               {p: Program{Script: at("train.py"), Folder: at("train.py")}, says: at("train.py") + " is not a folder: name one that has the script"},
		"a hidden script":         {p: Program{Script: at("other/.x.py"), Folder: at("other")}, says: at("other/.x.py") + " would stay behind: a job carries no hidden files"},
		"a hidden script alone":   {p: Program{Script: at("other/.x.py")}, says: at("other/.x.py") + " would stay behind"},
		"a compiled script":       {p: Program{Script: at("other/x.pyc")}, says: at("other/x.pyc") + " would stay behind"},
		"in a hidden folder":      {p: Program{Script: at("other/.h/x.py"), Folder: at("other")}, says: at("other/.h/x.py") + " is in a folder that stays behind"},
		"larger when written":     {p: Program{Script: at("control")}, settings: map[string]any{"containerImage": "a", "jobName": "train"}, says: "what train carries has 2400 KiB when it is written as JSON, and a job has room for 1024"},
		"too large":               {p: Program{Script: at("big/data")}, says: at("big/data") + " has 512 KiB, and a job carries at most 512 KiB in all: put data on a volume"},
		"too large with others":   {p: Program{Script: at("big/train.py"), Folder: at("big")}, says: at("big/data") + " has 512 KiB, and a job carries at most"},
		"a link":                  {p: Program{Script: at("linked/train.py"), Folder: at("linked")}, says: at("linked/data") + " is a link or a device, and a job carries only files: replace it by a file, or move it out of " + at("linked")},
		"too many files":          {p: Program{Script: filepath.Join(crowd, "train.py"), Folder: crowd}, says: crowd + " has more than 200 files, and a job carries no more"},
		"a program in settings":   {p: Program{Script: at("train.py")}, settings: map[string]any{"mainProgram": "x.py"}, says: "the settings have mainProgram, but the job runs " + at("train.py") + ": remove it"},
		"setup commands, a text":  {p: Program{Script: at("train.py")}, settings: map[string]any{"setupCommands": "x"}, says: "the settings are wrong: setupCommands: is a text, and must be a list"},
		"volumes, a text":         {p: Program{Script: at("train.py")}, settings: map[string]any{"extraVolumes": "x"}, says: "the settings are wrong: extraVolumes: is a text, and must be a list"},
		"a negative number":       {p: Program{Script: at("train.py")}, settings: map[string]any{"containerImage": "a", "numGpusPerPod": int64(-1)}, says: "the settings are wrong: numGpusPerPod: "},
		"GPUs that are no number": {p: Program{Script: at("train.py")}, settings: map[string]any{"containerImage": "a", "numGpusPerPod": "two"}, says: "the settings are wrong: numGpusPerPod: "},
		"no image":                {p: Program{Script: at("train.py")}, says: "the settings are wrong: containerImage is missing: set the image that has the program"},
		"a name with capitals":    {p: Program{Script: at("train.py")}, settings: map[string]any{"containerImage": "a", "jobName": "Train"}, says: `the settings are wrong: jobName "Train" must start with`},
	} {
		t.Run(name, func(t *testing.T) {
			if row.settings == nil {
				row.settings = map[string]any{}
			}
			if _, err := row.p.Job("0.0.1", row.settings); err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, row.says)
			}
		})
	}
}

// A name that the user has written is never replaced by another one.
func TestANameIsTakenLiterallyOrRefused(t *testing.T) {
	p := Program{Script: filepath.Join(write(t, map[string]string{"train.py": "x"}), "train.py")}
	makes := map[string]func(settings map[string]any) (Job, error){
		"a script": func(settings map[string]any) (Job, error) { return p.Job("0.0.1", settings) },
		"a shell":  func(settings map[string]any) (Job, error) { return Shell("0.0.1", settings, time.Hour) },
		"an array": func(settings map[string]any) (Job, error) {
			one := p
			one.Array = &Array{First: 0, Last: 1}
			jobs, err := one.Jobs("0.0.1", settings)
			return append(jobs, Job{})[0], err
		},
	}
	for name, wrong := range map[any]string{
		"true": "", "null": "", "v2024": "", "a-1": "",
		"2024": `jobName "2024`, int64(2024): `jobName "2024`, 2024.0: `jobName "2024`, "2.5": `jobName "2.5`, "": "jobName ", " ": `jobName " `, "-a": `jobName "-a`,
		true: "jobName is true, and not a text: put it in quotes", false: "jobName is false, and not a text: put it in quotes",
	} {
		for what, job := range makes {
			j, err := job(map[string]any{"containerImage": "a", "jobName": name})
			switch {
			case wrong == "" && (err != nil || !strings.HasPrefix(j.Name(), fmt.Sprint(name))):
				t.Errorf("%s %#v: %v", what, name, err)
			case wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), "the settings are wrong: "+wrong)):
				t.Errorf("%s %#v: got %v, want %s", what, name, err, wrong)
			}
		}
	}
}

func TestAnArrayIsOneIndexedJob(t *testing.T) {
	script := filepath.Join(write(t, map[string]string{"train.py": "x"}), "train.py")
	for text, want := range map[string]string{"0-19%4": "20 4", "5-7%9": "3 3", "8-8%1": "1 1"} {
		array, err := ParseArray(text)
		if err != nil {
			t.Fatal(err)
		}
		j, err := Program{Script: script, Array: array}.Job("0.0.1", map[string]any{"containerImage": "a", "numGpusPerPod": int64(2), "jobName": "sweep"})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.In("", "blue"); err != nil {
			t.Fatal(err)
		}
		job := &batchv1.Job{}
		if err := json.Unmarshal(j.appWrapper.Spec.Components[1].Template.Raw, job); err != nil {
			t.Fatal(err)
		}
		pod, spec := job.Spec.Template.Spec, job.Spec
		if got := fmt.Sprint(*spec.Completions, *spec.Parallelism); got != want || *spec.CompletionMode != batchv1.IndexedCompletion || *spec.BackoffLimitPerIndex != retriesOfIndex ||
			pod.RestartPolicy != corev1.RestartPolicyNever || len(pod.Volumes) != 2 || job.Name != "sweep" || job.Kind != "Job" {
			t.Errorf("%s: %s", text, j.Manifest)
		}
		if j.appWrapper.Annotations["workload.codeflare.dev.appwrapper/retryLimit"] != "0" {
			t.Error("the AppWrapper would run all numbers again")
		}
		podSets, err := podSetsOf(j.appWrapper)
		if err != nil || len(podSets) != 1 || fmt.Sprint(podSets[0].Count) != want[strings.Index(want, " ")+1:] {
			t.Errorf("%s: quota is for %v, %v", text, podSets, err)
		}
		command := strings.NewReplacer("$$", "$", `cd "$(mktemp -d)"`, "", "cp -rL "+mounted+"/* .", "", "torchrun", "echo number $MLBATCH_ARRAY_INDEX of rank").Replace(pod.Containers[0].Command[2])
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Env = []string{"JOB_COMPLETION_INDEX=2", "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if says := fmt.Sprintf("number %d of rank --nnodes=1 --node_rank=0 --nproc_per_node=2", array.First+2); err != nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v: it prints %s, and not %s", text, err, out, says)
		}
	}
}

func TestAnArrayWithoutALimitIsAnAppWrapperEach(t *testing.T) {
	script := filepath.Join(write(t, map[string]string{"train.py": "x"}), "train.py")
	array, err := ParseArray("3-4")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := Program{Script: script, Array: array}.Jobs("0.0.1", map[string]any{"containerImage": "a", "numGpusPerPod": int64(8), "numPods": int64(2)})
	if err != nil || len(jobs) != 2 {
		t.Fatal(len(jobs), err)
	}
	name := jobs[0].Array()
	for i, j := range jobs {
		number := 3 + i
		if err := j.In("", "blue"); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%s-%d", name, number); j.Name() != want || !strings.HasPrefix(name, "train-") || j.AppWrapper().Labels[ArrayLabel] != name {
			t.Errorf("%s, labels %v, not %s", j.Name(), j.AppWrapper().Labels, want)
		}
		if !strings.Contains(j.Manifest, fmt.Sprintf("export MLBATCH_ARRAY_INDEX=%d", number)) || !strings.Contains(j.Manifest, ArrayLabel+": "+name) || !strings.Contains(j.Manifest, "kind: PyTorchJob") {
			t.Errorf("got %s", j.Manifest)
		}
		again, err := Again("0.0.1", stored(t, j), "other", []string{"numGpusPerPod=4"})
		if err != nil || again.Array() != name || !strings.Contains(again.Manifest, fmt.Sprintf("export MLBATCH_ARRAY_INDEX=%d", number)) {
			t.Errorf("made again: %v, %s", err, again.Manifest)
		}
	}
}

func TestAScriptGivesItsJobAName(t *testing.T) {
	for script, want := range map[string]string{
		"train.py": "train", "My_Script v2.py": "my-script-v2", "2024.py": "job-2024", "äöü.py": "job",
		strings.Repeat("a", 43) + "_bcd.sh": strings.Repeat("a", 43), "--.py": "job", "run": "run",
	} {
		j, err := Program{Script: filepath.Join(write(t, map[string]string{script: "x"}), script)}.Job("0.0.1", image)
		if err != nil {
			t.Errorf("%s: %v", script, err)
			continue
		}
		name, random := j.appWrapper.Name[:len(j.appWrapper.Name)-6], j.appWrapper.Name[len(j.appWrapper.Name)-6:]
		if name != want || !regexp.MustCompile(`^-[a-z0-9]{5}$`).MatchString(random) {
			t.Errorf("%s: %s", script, j.appWrapper.Name)
		}
	}
}

func TestAScriptHasEnough(t *testing.T) {
	script := filepath.Join(write(t, map[string]string{"train.py": "x"}), "train.py")
	for want, settings := range map[string]map[string]any{
		"1 4Gi":   {},
		"8 32Gi":  {"numGpusPerPod": int64(2)},
		"12 48Gi": {"numGpusPerPod": 3.0}, // as a settings file has it
		"3 5Gi":   {"numGpusPerPod": int64(2), "numCpusPerPod": int64(3), "totalMemoryPerPod": "5Gi"},
		"1 900Mi": {"totalMemoryPerPod": "900Mi"},
	} {
		settings["containerImage"] = "a"
		j, err := Program{Script: script}.Job("0.0.1", settings)
		if err != nil {
			t.Fatal(err)
		}
		pod, _ := inside(t, j.appWrapper)
		requests := pod.Spec.Containers[0].Resources.Requests
		if got := requests.Cpu().String() + " " + requests.Memory().String(); got != want {
			t.Errorf("it has %s, not %s", got, want)
		}
	}
}
