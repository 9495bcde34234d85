// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// generatedProgram is what the generator makes of `progress`: a probe, and what the script of the pod does
// with the file before the program starts.
type generatedProgram struct {
	t     testing.TB
	probe []string
	start string
	file  string
	// said is what the probe says of a file of that age.
	said map[time.Duration]bool
}

const progressFile = "/tmp/progress"

// generated reads the golden file of the generator.
func generated(t *testing.T) *generatedProgram {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "tools", "pytorchjob-generator", "testdata", "progress.out.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var aw struct {
		Spec struct {
			Components []struct {
				Template map[string]any `json:"template"`
			} `json:"components"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &aw); err != nil || len(aw.Spec.Components) != 1 {
		t.Fatalf("the golden file of the generator has another form: %v", err)
	}
	containers, _, err := unstructured.NestedSlice(aw.Spec.Components[0].Template, "spec", "pytorchReplicaSpecs", "Master", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("its pod has the containers %v: %v", containers, err)
	}
	container, _ := containers[0].(map[string]any)
	probe, _, _ := unstructured.NestedStringSlice(container, "readinessProbe", "exec", "command")
	command, _, _ := unstructured.NestedStringSlice(container, "command")
	if len(probe) != 3 || len(command) != 3 {
		t.Fatalf("its probe is %q, its command %q", probe, command)
	}
	p := &generatedProgram{t: t, file: filepath.Join(t.TempDir(), "progress"), said: map[time.Duration]bool{}}
	p.probe = []string{probe[0], probe[1], strings.ReplaceAll(probe[2], progressFile, p.file)}
	for line := range strings.Lines(command[2]) {
		if strings.Contains(line, progressFile) {
			p.start += strings.ReplaceAll(line, progressFile, p.file)
		}
	}
	return p
}

// ready runs the probe on a file of that age, roughly if it is far from the present: a shell takes time.
func (p *generatedProgram) ready(age time.Duration) bool {
	if age.Abs() > 2*time.Minute {
		age = 10 * time.Minute * (age / age.Abs())
	}
	if answer, known := p.said[age]; known {
		return answer
	}
	p.touch(age)
	p.said[age] = exec.Command(p.probe[0], p.probe[1:]...).Run() == nil
	return p.said[age]
}

// touch writes a file of that age.
func (p *generatedProgram) touch(age time.Duration) {
	p.t.Helper()
	if err := os.WriteFile(p.file, nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(p.file, at, at); err != nil {
		p.t.Fatal(err)
	}
}

// keepsOldFiles reports whether a file is still there when the script of the pod has begun.
func (p *generatedProgram) keepsOldFiles() bool {
	p.touch(24 * time.Hour)
	if out, err := exec.Command("sh", "-c", p.start+"true").CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v", out, err)
	}
	_, err := os.Stat(p.file)
	return err == nil
}

// rank is one pod: its program, and its kubelet.
type rank struct {
	trace
	program *generatedProgram
	pod     string

	step  time.Duration // between two writes; 0: the program does not write
	wrote time.Time     // when it wrote last
	file  time.Time     // the time of its file, by the clock of the node; zero: there is none

	clock    time.Duration // how far that of the node is ahead
	began    time.Time     // the container
	restarts time.Time     // when the next one does; zero: it runs
	timesOut bool          // the probe
	forgets  bool          // the kubelet has just restarted
	silent   bool          // the node
	alone    bool          // the side-car has ended

	ready  bool // as the kubelet has written last
	exists bool // it has written
	due    bool // it has something else to write
}

func newRank(tr trace, pod string, program *generatedProgram, now time.Time) *rank {
	r := &rank{trace: tr, program: program, pod: pod}
	if tr.Volume {
		r.file = now.Add(-24 * time.Hour)
	}
	r.starts(now)
	return r
}

// starts is what the script of the pod does first.
func (r *rank) starts(now time.Time) {
	r.began, r.restarts, r.step = now, time.Time{}, 0
	if !r.Volume || !r.program.keepsOldFiles() {
		r.file = time.Time{}
	}
}

// writes is when the program writes its file; ahead is for a pause.
func (r *rank) writes(now time.Time, ahead time.Duration) {
	r.wrote, r.file = now, now.Add(r.clock+ahead)
}

// happens changes what the program or the node does from now on.
func (r *rank) happens(e entry, now time.Time) {
	r.due = true
	switch {
	case e.Step.Duration > 0:
		r.step = e.Step.Duration
		r.writes(now, 0)
	case e.Stop:
		r.step = 0
	case e.Pause.Duration > 0:
		r.step = 0
		r.writes(now, e.Pause.Duration)
	case e.Restart.Duration > 0:
		r.restarts = now.Add(e.Restart.Duration)
	case e.Probe != "":
		r.timesOut = e.Probe == "times out"
	case e.Kubelet != "":
		r.forgets = true
	case e.Node != "":
		r.silent = e.Node == "silent"
	case e.SidecarEnds:
		r.alone = true
	default:
		r.clock = e.Clock.Duration
	}
}

// look is what happens in 15 seconds. It returns how the pod changes, or nil.
func (r *rank) look(now time.Time) func(client.Object) {
	if !r.restarts.IsZero() && !now.Before(r.restarts) {
		r.starts(now)
		r.due = true
	}
	for r.step > 0 && r.restarts.IsZero() && !r.wrote.Add(r.step).After(now) {
		r.writes(r.wrote.Add(r.step), 0)
	}
	if r.silent {
		return func(o client.Object) { hide(o.(*corev1.Pod), now) }
	}
	ready := r.isReady(now)
	if r.exists && ready == r.ready && !r.due {
		return nil
	}
	r.due = false
	return func(o client.Object) { r.publish(o.(*corev1.Pod), ready, now) }
}

// isReady is what the kubelet finds.
func (r *rank) isReady(now time.Time) bool {
	switch {
	case !r.restarts.IsZero() || now.Sub(r.began) < r.Startup.Duration || r.timesOut:
		return false
	case r.forgets:
		r.forgets = false
		return false
	case r.file.IsZero():
		return true // TestTheProbeKnowsAHang runs it without a file
	}
	return r.program.ready(now.Add(r.clock).Sub(r.file))
}

// hide is what the node controller writes when a node is silent.
func hide(p *corev1.Pod, now time.Time) {
	for i, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			p.Status.Conditions[i].Status, p.Status.Conditions[i].LastTransitionTime = corev1.ConditionFalse, metav1.Time{Time: now}
		}
	}
}

// publish is what the kubelet writes, by the clock of its node.
func (r *rank) publish(p *corev1.Pod, ready bool, now time.Time) {
	at := now.Add(r.clock)
	if !r.exists {
		r.build(p, at)
	}
	was := p.Status.Conditions
	setReady(p, ready && !r.alone, at)
	for i, c := range p.Status.Conditions {
		if len(was) > 0 && was[i].Status == c.Status {
			p.Status.Conditions[i] = was[i]
		}
	}
	main := &p.Status.ContainerStatuses[0]
	main.Ready, main.State.Running.StartedAt = ready, metav1.Time{Time: r.began.Add(r.clock)}
	if !r.restarts.IsZero() {
		main.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	if r.Sidecar {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, r.side())
	}
	if !r.exists || ready != r.ready {
		fields := metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{}}}}`)
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status", Time: &metav1.Time{Time: now}, FieldsV1: fields}}
	}
	r.exists, r.ready = true, ready
}

// build gives the pod what the trace says of it, and starts it.
func (r *rank) build(p *corev1.Pod, at time.Time) {
	start(p, at)
	if r.Startup.Duration > 0 {
		p.Spec.Containers[0].StartupProbe = &corev1.Probe{}
	}
	if r.Sidecar {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side"})
	}
}

func (r *rank) side() corev1.ContainerStatus {
	side := corev1.ContainerStatus{Name: "side", Ready: !r.alone, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	if r.alone {
		side.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	}
	return side
}
