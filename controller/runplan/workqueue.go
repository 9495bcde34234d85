// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

const (
	// agentFolder is where a worker finds the agent.
	agentFolder = "/codeflare/bin"
	// tasksFolder is where a worker has its task and its result.
	tasksFolder = "/codeflare/tasks"
	// storeFolder is where the broker has a volume with the tasks.
	storeFolder = "/codeflare/queue"
	// outbox is the folder of the results.
	outbox = "outbox"
	// BrokerRole is the role of the broker's pod, and the name of its container.
	BrokerRole = "broker"
	// uidDigits of the Run are a part of the name of the queue's record.
	uidDigits = 8
	// absenceLimit is how long its pods, or the broker, may take to be there again.
	absenceLimit = "10m"
)

// Defaults of the schema, for what has not passed it.
const (
	defaultInbox       = "inbox"
	defaultMaxAttempts = 3
	defaultLease       = 30
)

// BrokerName is the name of the Job of the broker.
func BrokerName(appWrapper string) string { return beside(appWrapper, "broker") }

// workQueue hands out tasks: only the broker sees where they are.
func (j job) workQueue() []component {
	return []component{
		{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": j.queueName()},
			"spec": map[string]any{
				"selector": map[string]string{v1beta2.AppWrapperLabel: j.name, v1alpha1.RoleLabel: BrokerRole},
				"ports":    []any{map[string]any{"port": queue.Port}},
			},
		},
		{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": BrokerName(j.name)},
			"spec": map[string]any{
				"backoffLimit": math.MaxInt32, "template": j.broker(),
				"podFailurePolicy": map[string]any{"rules": []any{
					map[string]any{"action": "FailJob", "onExitCodes": map[string]any{
						"containerName": BrokerRole, "operator": "In", "values": []int{queue.ExitHopeless},
					}},
					map[string]any{"action": "Ignore", "onPodConditions": []any{map[string]any{"type": corev1.DisruptionTarget, "status": corev1.ConditionTrue}}},
				}},
			},
		},
		{
			// Without completions, it ends when its pods have: the broker tells them when.
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": j.name},
			"spec": map[string]any{"parallelism": j.size.Workers, "backoffLimit": math.MaxInt32, "template": j.taskWorker()},
		},
	}
}

func (j job) queueName() string { return j.name + "-queue" }

// taskWorker is the template of the pods that get tasks. Their agent runs the line for each.
func (j job) taskWorker() corev1.PodTemplateSpec {
	template := j.pod("worker", "main", []string{agentFolder + agentProgram, "work", "--work=" + tasksFolder},
		corev1.EnvVar{Name: queue.AddressVariable, Value: fmt.Sprintf("http://%s:%d", j.queueName(), queue.Port)},
		corev1.EnvVar{Name: queue.CommandVariable, Value: literal(j.line())})
	pod := &template.Spec
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	bin := corev1.VolumeMount{Name: "agent", MountPath: agentFolder}
	pod.InitContainers = append(pod.InitContainers, j.agent("install", []corev1.VolumeMount{bin}, "install", agentFolder))
	bin.ReadOnly = true
	tasks := corev1.VolumeMount{Name: "tasks", MountPath: tasksFolder}
	main := &pod.Containers[0]
	main.VolumeMounts = append(slices.Clone(main.VolumeMounts), bin, tasks)
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	pod.Volumes = append(slices.Clone(pod.Volumes), corev1.Volume{Name: bin.Name, VolumeSource: empty}, corev1.Volume{Name: tasks.Name, VolumeSource: empty})
	return template
}

// broker is the template of the pod that has the tasks. It has nothing of the program but who runs
// it, and where.
func (j job) broker() corev1.PodTemplateSpec {
	template := j.pod(BrokerRole, BrokerRole, nil)
	program := template.Spec
	template.Annotations = nil // about nodes that are close to each other
	var store data
	store.mountVolume(corev1.VolumeMount{Name: "queue", MountPath: storeFolder}, j.store.Spec)
	container := j.agent(BrokerRole, store.mounts, j.brokerCommand()...)
	container.Resources = j.brokerResources()
	container.SecurityContext.RunAsUser = nil // the pod's counts
	container.Ports = []corev1.ContainerPort{{ContainerPort: queue.Port}}
	if bucket := j.store.Spec.S3; bucket != nil {
		container.Env = keysOf(bucket)
	}
	template.Spec = corev1.PodSpec{
		RestartPolicy:     corev1.RestartPolicyNever,
		PriorityClassName: program.PriorityClassName,
		NodeSelector:      program.NodeSelector,
		ImagePullSecrets:  program.ImagePullSecrets,
		SecurityContext:   j.brokerSecurity(program.SecurityContext),
		Volumes:           store.volumes,
		Containers:        []corev1.Container{container},
	}
	return template
}

// brokerSecurity is that of the program: the tasks are its user's. But the broker is never root.
func (j job) brokerSecurity(program *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{}
	if program != nil {
		*security = *program
	}
	if user := security.RunAsUser; user != nil && *user == 0 {
		security.RunAsUser = nil
	}
	security.FSGroup = cmp.Or(security.FSGroup, j.Settings.BrokerFSGroup)
	return security
}

// brokerResources are those that count for quota. For a moment, the broker takes more.
func (j job) brokerResources() corev1.ResourceRequirements {
	requests := j.Settings.BrokerResources
	limits := requests.DeepCopy()
	if memory, has := limits[corev1.ResourceMemory]; has {
		memory.Add(memory)
		limits[corev1.ResourceMemory] = memory
	}
	if cpu, has := limits[corev1.ResourceCPU]; has && cpu.Cmp(oneCPU) < 0 {
		limits[corev1.ResourceCPU] = oneCPU
	}
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

var oneCPU = resource.MustParse("1")

func (j job) brokerCommand() []string {
	var settings v1alpha1.WorkQueue
	if block := j.Application.Spec.WorkQueue; block != nil {
		settings = *block
	}
	seconds := func(n int32) string { return (time.Duration(n) * time.Second).String() }
	own := j.Run.Spec.Queue
	command := []string{
		"broker", fmt.Sprintf("--listen=:%d", queue.Port), "--run=" + j.Run.Name, "--uid=" + firstDigits(string(j.Run.UID)),
		"--inbox=" + literal(cmp.Or(j.Run.Spec.Inbox, defaultInbox)), "--outbox=" + outbox,
		"--lease=" + seconds(cmp.Or(settings.LeaseSeconds, defaultLease)),
		fmt.Sprintf("--max-attempts=%d", cmp.Or(settings.MaxAttempts, defaultMaxAttempts)),
		"--task-timeout=" + seconds(settings.TaskTimeoutSeconds), fmt.Sprintf("--max-failed=%d", own.MaxFailed),
	}
	if own.Open {
		command = append(command, "--open")
	}
	if bucket := j.store.Spec.S3; bucket != nil {
		return append(command, placeOf(bucket)...)
	}
	return append(command, "--folder="+storeFolder)
}

// firstDigits are zeros for a Run that is only planned.
func firstDigits(uid string) string { return (uid + "00000000")[:uidDigits] }

// graceAnnotations are those of the AppWrapper of a work queue: while the broker or a worker is
// replaced, nothing is lost. A broker that gives up does so for good.
func (j job) graceAnnotations(asked map[string]string) map[string]string {
	if j.store == nil {
		return nil
	}
	terminal := fmt.Sprint(queue.ExitHopeless)
	if own := asked[v1beta2.TerminalExitCodesAnnotation]; own != "" {
		terminal = own + "," + terminal
	}
	return map[string]string{
		v1beta2.FailureGracePeriodDurationAnnotation: cmp.Or(asked[v1beta2.FailureGracePeriodDurationAnnotation], absenceLimit),
		v1beta2.TerminalExitCodesAnnotation:          terminal,
	}
}

// storeOf is the DataSet with the tasks of a work queue.
func storeOf(in Input) (*v1alpha1.DataSet, []Problem) {
	wanted := in.Run.Spec.Queue
	if in.Application.Spec.API != v1alpha1.APIWorkQueue {
		if wanted != nil || in.Run.Spec.Inbox != "" {
			return nil, []Problem{impossible("inbox and queue are of a workqueue Run, and Application %s is of api %s: leave them out", in.Application.Name, in.Application.Spec.API)}
		}
		return nil, nil
	}
	if wanted == nil || wanted.DataSet.Name == "" {
		return nil, []Problem{impossible("a workqueue Run needs queue.dataset.name")}
	}
	store, problems := in.dataSet(wanted.DataSet.Name, "its queue")
	if len(problems) > 0 {
		return nil, problems
	}
	if store.Spec.ReadOnly {
		return nil, []Problem{impossible("DataSet %s is readOnly, and the queue writes its results there: name another", store.Name)}
	}
	return &store, nil
}

// HasQueue tells whether a Run has a work queue. The plans of others have no queue.
func HasQueue(run *v1alpha1.Run) bool { return run.Spec.Queue != nil }
