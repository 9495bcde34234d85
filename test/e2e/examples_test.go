// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// small replaces what an example requests with what fits on a laptop.
var small = []string{"numCpusPerPod=200m", "totalMemoryPerPod=600Mi", "limitCpusPerPod=2", "limitMemoryPerPod=600Mi"}

// learns is the program in the image of samples/pytorch-digits. It fails unless its processes
// have communicated.
const learns = "mainProgram=/workspace/train.py"

// examples are the settings files of tools/pytorchjob-generator/examples, the settings to
// override, and what the log of a pod must contain.
var examples = []struct {
	name string
	set  []string
	says string
}{
	{"single-gpu", []string{learns}, `"event": "done"`},
	{"multi-node-gdr", []string{"numGpusPerPod=1", "numRoceGdr=1", learns}, `"sum": 3.0`},
	{"cpu-only", []string{"setupCommands={echo $SHARDS shards}"}, "64 shards"},
	{"elastic-limits", []string{"mainProgram=--nproc_per_node=1 /workspace/train.py"}, `"sum": 3.0`},
	{"private-git", []string{"setupCommands={grep -h . /tmp/.ssh/keys/id_rsa /tmp/.ssh/hosts/known_hosts,echo $GIT_SSH_COMMAND}", "mainProgram=null"}, "a key\na host\nssh -i /tmp/.ssh/keys/id_rsa"},
	{"nvme", []string{"mountNVMe.storage=1Mi", "setupCommands={grep $NVME_MOUNT_PATH /proc/mounts}", learns, "numGpusPerPod=1"}, " /workspace/scratch-nvme "},
	{"jobset", []string{learns}, `"sum": 3.0`},
}

// Every example settings file is submitted as a reader would do it, and succeeds.
func TestExamplesOfSettingsFilesSucceed(t *testing.T) {
	testenv.Test(t, features.New("examples").Assess("each of them succeeds", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		// Only our own local cluster has the JobSet controller.
		s := tell(t, cfg, "e2e-examples", "emma", needs.TrainingPods, needs.PyTorchJobs, needs.Gangs, needs.Machine)
		s.furnish(ctx)
		for _, example := range examples {
			t.Run(example.name, func(t *testing.T) {
				file := filepath.Join("..", "..", "tools", "pytorchjob-generator", "examples", example.name+".yaml")
				s.submits(ctx, t, cfg, file, append(small, example.set...))
				s.said(ctx, t, example.name, example.says)
			})
		}
		for _, nodes := range []int64{1, 2} {
			t.Run(fmt.Sprintf("a script on %d nodes", nodes), func(t *testing.T) { s.submitsScript(ctx, t, cfg, nodes) })
		}
		t.Run("an array", func(t *testing.T) { s.submitsAnArray(ctx, t, cfg) })
		t.Run("a shell", func(t *testing.T) { s.opensAShell(ctx, t) })
		return ctx
	}).Feature())
}

// submitsScript submits a script that imports another file of its folder.
func (s *story) submitsScript(ctx context.Context, t *testing.T, cfg *envconf.Config, nodes int64) {
	t.Helper()
	folder, name := t.TempDir(), fmt.Sprintf("script-%d", nodes)
	for file, text := range map[string]string{
		"train.py":        "import os, sys\nfrom lib.model import greeting\nopen('written', 'w').close()\nprint(greeting(*sys.argv[1:]), os.environ['LOCAL_RANK'], os.environ['WORLD_SIZE'])\n",
		"lib/__init__.py": "", "lib/model.py": "def greeting(*words):\n    return 'hello ' + '|'.join(words)\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(folder, "lib"), 0o755), os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := submit.Settings(nil, append(small, "jobName="+name, "containerImage="+here.Training.Name), nil)
	if err != nil {
		t.Fatal(err)
	}
	settings["numPods"] = nodes
	job, err := submit.Program{Script: filepath.Join(folder, "train.py"), Folder: folder, Arguments: []string{"a b", "$(c)"}}.Job("0.0.1", settings)
	if err != nil {
		t.Fatal(err)
	}
	s.submitsJob(ctx, t, cfg, job, name)
	s.said(ctx, t, name, fmt.Sprintf("hello a b|$(c) 0 %d\n", nodes))
}

// submitsAnArray submits three numbers. Each of them is itself.
func (s *story) submitsAnArray(ctx context.Context, t *testing.T, cfg *envconf.Config) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "sweep.sh")
	text := "[ $MLBATCH_ARRAY_INDEX = $((JOB_COMPLETION_INDEX + 5)) ] && echo number $MLBATCH_ARRAY_INDEX of 5 6 7\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := submit.Settings(nil, append(small, "jobName=sweep", "containerImage="+here.Training.Name), nil)
	if err != nil {
		t.Fatal(err)
	}
	array, err := submit.ParseArray("5-7%2")
	if err != nil {
		t.Fatal(err)
	}
	job, err := submit.Program{Script: script, Array: array}.Job("0.0.1", settings)
	if err != nil {
		t.Fatal(err)
	}
	s.submitsJob(ctx, t, cfg, job, "sweep")
	s.said(ctx, t, "sweep", " of 5 6 7\n")
	if pods, err := s.pods(ctx, "sweep"); err != nil || len(pods) != 3 {
		t.Errorf("%d pods ran (%v)", len(pods), err)
	}
}

// opensAShell runs a command in a pod of its own. The exit status is that of the command, and the job is gone after it.
func (s *story) opensAShell(ctx context.Context, t *testing.T) {
	t.Helper()
	mlbatch := s.command(ctx, "emma")
	said, err := mlbatch(ctx, "shell", "--namespace", s.namespace, "--name", "visit", "--image", here.Training.Name, "--set", strings.Join(small, ","), "--", "sh", "-c", "echo in $RANK of $WORLD_SIZE; exit 7")
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 7 || !strings.Contains(said, "\nin 0 of 1\n") {
		t.Errorf("%v: it says\n%s", err, said)
	}
	s.until(ctx, "the job of the shell goes", func(ctx context.Context) (string, error) {
		return s.stillThere(ctx, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Name: "visit"}})
	})
}

// said fails unless the log of a job's first pod has a text.
func (s *story) said(ctx context.Context, t *testing.T, job, text string) {
	t.Helper()
	pods, err := s.pods(ctx, job)
	if err != nil || len(pods) == 0 {
		t.Fatalf("it has no pods (%v)", err)
	}
	log, err := s.api.CoreV1().Pods(s.namespace).GetLogs(pods[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil || !strings.Contains(string(log), text) {
		t.Errorf("%v: pod %s says\n%s", err, pods[0].Name, log)
	}
}

// submits does what mlbatch submit --wait does.
func (s *story) submits(ctx context.Context, t *testing.T, cfg *envconf.Config, file string, set []string) {
	t.Helper()
	settings, err := submit.Settings([]string{file}, append(set, "containerImage="+here.Training.Name), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := submit.New("0.0.1", settings)
	if err != nil {
		t.Fatal(err)
	}
	s.submitsJob(ctx, t, cfg, job, settings["jobName"].(string))
}

func (s *story) submitsJob(ctx context.Context, t *testing.T, cfg *envconf.Config, job submit.Job, name string) {
	t.Helper()
	if err := job.In(s.namespace, ""); err != nil {
		t.Fatal(err)
	}
	user := s.watcher(t, cfg)
	var notes strings.Builder
	if err := job.Check(ctx, user, &notes); err != nil || notes.Len() > 0 {
		t.Fatalf("the check says %v, and notes %s", err, &notes)
	}
	if err := job.Create(ctx, user, t.Output()); err != nil {
		t.Fatal(err)
	}
	s.created = append(s.created, &workload.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
	ctx, cancel := patience.Context(ctx)
	defer cancel()
	if err := job.Wait(ctx, user, t.Output()); err != nil {
		t.Fatal(err)
	}
}

// watcher returns a client of the user that can watch.
func (s *story) watcher(t *testing.T, cfg *envconf.Config) client.WithWatch {
	t.Helper()
	config := rest.CopyConfig(cfg.Client().RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "emma", Groups: []string{"system:authenticated"}}
	user, err := client.NewWithWatch(config, client.Options{Scheme: s.admin.GetScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// furnish creates what the examples assume: devices on the real node, the administrator's
// storage, and the team's own objects.
func (s *story) furnish(ctx context.Context) {
	s.t.Helper()
	s.devices(ctx, "4")
	s.t.Cleanup(func() { s.devices(context.Background(), "0") })
	mode, class := storagev1.VolumeBindingImmediate, "local-nvme"
	everything := []client.Object{
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode},
		volume("e2e-examples-nvme", class), volume("e2e-examples-data", ""),
		&corev1.ServiceAccount{ObjectMeta: s.own("gdr")},
		&corev1.ConfigMap{ObjectMeta: s.own("nvidia-topo-gdr"), Data: map[string]string{"virtualTopology.xml": "<system/>"}},
		&corev1.ConfigMap{ObjectMeta: s.own("nccl-netwk-env-vars"), Data: map[string]string{"NCCL_SOCKET_IFNAME": "eth0"}},
		&corev1.Secret{ObjectMeta: s.own("git-deploy-key"), StringData: map[string]string{"id_rsa": "a key\n"}},
		&corev1.ConfigMap{ObjectMeta: s.own("git-known-hosts"), Data: map[string]string{"known_hosts": "a host\n"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: s.own("my-data"), Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(string), VolumeName: "e2e-examples-data", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Mi")}},
		}},
	}
	for _, object := range everything {
		if err := s.admin.Create(ctx, object); err != nil {
			s.t.Fatalf("cannot create %s: %v", object.GetName(), err)
		}
		s.created = append(s.created, object)
	}
	s.until(ctx, "emma may look at the queues", func(ctx context.Context) (string, error) {
		return "", s.user.List(ctx, &kueue.ClusterQueueList{})
	})
}

func (s *story) own(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

// volume is a hostPath volume, which goes away with the cluster.
func volume(name, class string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:                      corev1.ResourceList{"storage": resource.MustParse("1Gi")},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log/pods"}},
	}}
}

// devices adds GPUs and RDMA interfaces to the status of the real node. No device plugin
// removes them.
func (s *story) devices(ctx context.Context, count string) {
	s.t.Helper()
	s.until(ctx, "the real node has devices", func(ctx context.Context) (string, error) {
		var nodes corev1.NodeList
		if err := s.admin.List(ctx, &nodes); err != nil {
			return "", err
		}
		for _, node := range nodes.Items {
			if node.Labels["localcluster.mlbatch.dev/real"] != "true" {
				continue
			}
			before := node.DeepCopy()
			for _, name := range []corev1.ResourceName{"nvidia.com/gpu", "nvidia.com/roce_gdr"} {
				node.Status.Capacity[name], node.Status.Allocatable[name] = resource.MustParse(count), resource.MustParse(count)
			}
			return "", s.admin.GetControllerRuntimeClient().Status().Patch(ctx, &node, client.MergeFrom(before))
		}
		return "the real node", nil
	})
}
