// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	queue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	queuecache "sigs.k8s.io/kueue/pkg/cache/queue"
	schedulercache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/workload"
	"sigs.k8s.io/kueue/pkg/workload/evict"
	"sigs.k8s.io/kueue/pkg/workload/patching"
)

// GPU and CPU are the resources of quotas and jobs.
const (
	GPU core.ResourceName = "nvidia.com/gpu"
	CPU                   = core.ResourceCPU
)

// Flavors can have quota, in the order in which they are tried.
var Flavors = []queue.ResourceFlavorReference{"h100", "a100"}

// Cluster is the queues and the jobs, which arrive in turn.
type Cluster struct {
	Cohorts []queue.Cohort
	Queues  []queue.ClusterQueue
	Jobs    []Job
	// Apart is the time between two arrivals.
	Apart time.Duration
	// Stopping is how long a preempted job holds its quota.
	Stopping func(job string) time.Duration
	// Runs is how long a job runs before it ends; nil for jobs that do not end by themselves.
	Runs func(job string) time.Duration
	// Pause is how long after its nth preemption a job is queued again; nil for at once. Our controller
	// writes status.requeueState.requeueAt.
	Pause func(n int) time.Duration
	// Holds is from which preemption on a job also waits until the one that preempted it has ended; 0
	// for never.
	Holds int
	// Own is how many preemptions do not count if work of the same queue preempted a job last.
	Own int
	// Late is up to which preemption our controller comes only when the job is queued already.
	Late int
	// Until is how long the cluster is watched; 0 for until a job is preempted maxPreemptions times.
	Until time.Duration
}

// Settings are what an administrator chooses for all queues. Feature gates are global variables of
// Kueue.
type Settings struct {
	Preemption queue.ClusterQueuePreemption
	Sharing    *config.FairSharing
}

// Job is work of one pod set, in the queue of its team.
type Job struct {
	Name, Queue string
	GPUs, CPUs  int64 // of each pod
	Priority    int32
	Pods        int32 // 0 for one
}

// Outcome says what happened after the last arrival.
type Outcome struct {
	// Ended is set if nobody is preempted any more. Otherwise the limit of preemptions of one
	// job, or of cycles, was reached.
	Ended bool
	// After is how long it took until then.
	After time.Duration
	// Preemptions of each job.
	Preemptions map[string]int
	// Lost is the time for which GPUs worked for nothing, if no job saves its work.
	Lost time.Duration
	// Ever is the preemptions of each job, also while others arrived.
	Ever map[string]int
	// By is for which jobs each was preempted, in order.
	By map[string][]string
	// Paused is the time for which jobs were not queued because of Cluster.Pause.
	Paused time.Duration
	// Started is when each job started first, since the begin.
	Started map[string]time.Duration
	// Log has a line for each start and preemption.
	Log []string
	// Running is the jobs that have quota at the end.
	Running []string
}

// Most is the highest number of preemptions of one job.
func (o Outcome) Most() int { return most(o.Preemptions) }

// MostEver is the same since the begin.
func (o Outcome) MostEver() int { return most(o.Ever) }

func most(times map[string]int) int {
	most := 0
	for _, n := range times {
		most = max(most, n)
	}
	return most
}

// begin is whole, as the times of Kubernetes.
var begin = time.Unix(1_800_000_000, 0)

type requeuer interface{ ProcessRequeues(context.Context) int }

type simulation struct {
	Cluster
	ctx       context.Context
	log       logr.Logger
	clock     *testingclock.FakeClock
	api       *apiServer
	queues    *queuecache.Manager
	requeuer  requeuer
	cache     *schedulercache.Cache
	scheduler *scheduler.Scheduler
	stopped   map[client.ObjectKey]time.Time // when the last pod of a preempted job ends
	admitted  map[client.ObjectKey]time.Time
	paused    map[client.ObjectKey]time.Time // when a preempted job is queued again
	held      map[client.ObjectKey]string    // for which job it waits after that
	arrived   int
	Outcome
}

// Limits end a simulation of what does not end.
const (
	maxCycles      = 2000
	maxWatched     = 20_000 // cycles with Until
	maxPreemptions = 10
)

// Run lets the jobs of the cluster arrive, and goes on until nothing changes any more.
func Run(cluster Cluster, settings Settings) Outcome {
	s := start(cluster, settings)
	most := maxCycles
	if s.Until > 0 {
		most = maxWatched
	}
	for i := 0; i < most && !s.over() && !s.Ended; i++ {
		s.step()
		s.Ended = s.idle()
	}
	s.After = s.clock.Since(begin)
	for key := range s.admitted {
		s.Running = append(s.Running, key.Name)
	}
	slices.Sort(s.Running)
	return s.Outcome
}

func (s *simulation) over() bool {
	if s.Until > 0 {
		return s.clock.Since(begin) > s.Until
	}
	return s.Most() >= maxPreemptions
}

func start(cluster Cluster, settings Settings) *simulation {
	s := &simulation{Cluster: cluster, ctx: logr.NewContext(context.Background(), logr.Discard()), log: logr.Discard(),
		clock: testingclock.NewFakeClock(begin),
		api: &apiServer{workloads: map[client.ObjectKey]*queue.Workload{},
			changed: map[client.ObjectKey]*queue.Workload{}},
		stopped: map[client.ObjectKey]time.Time{}, admitted: map[client.ObjectKey]time.Time{},
		paused:  map[client.ObjectKey]time.Time{},
		held:    map[client.ObjectKey]string{},
		Outcome: Outcome{Preemptions: map[string]int{}, Ever: map[string]int{}, By: map[string][]string{}, Started: map[string]time.Duration{}}}
	pending := expectations.New()
	s.cache = schedulercache.New(s.api, schedulercache.WithFairSharing(settings.Sharing != nil))
	s.queues, s.requeuer = queuecache.NewManagerForUnitTestsWithRequeuer(s.api, s.cache,
		queuecache.WithClock(s.clock), queuecache.WithPreemptionExpectations(pending))
	s.scheduler = scheduler.New(s.queues, s.cache, s.api, noEvents{}, scheduler.WithFairSharing(settings.Sharing),
		scheduler.WithClock(nil, s.clock), scheduler.WithPreemptionExpectations(pending))
	setAdmissionRoutineWrapper(s.scheduler, atOnce{})
	s.addQueues(settings.Preemption)
	return s
}

func (s *simulation) addQueues(preemption queue.ClusterQueuePreemption) {
	for _, name := range Flavors {
		flavor := queue.ResourceFlavor{ObjectMeta: api.ObjectMeta{Name: string(name)}}
		s.cache.AddOrUpdateResourceFlavor(s.log, &flavor)
	}
	for _, cohort := range s.Cohorts {
		s.must(s.cache.AddOrUpdateCohort(&cohort))
		s.queues.AddOrUpdateCohort(s.ctx, &cohort)
	}
	for _, q := range s.Queues {
		q.Spec.Preemption = &preemption
		s.must(s.cache.AddClusterQueue(s.ctx, &q))
		s.must(s.queues.AddClusterQueue(s.ctx, &q))
		local := queue.LocalQueue{ObjectMeta: api.ObjectMeta{Name: "default-queue", Namespace: q.Name},
			Spec: queue.LocalQueueSpec{ClusterQueue: queue.ClusterQueueReference(q.Name)}}
		s.must(s.cache.AddLocalQueue(&local))
		s.must(s.queues.AddLocalQueue(s.ctx, &local))
	}
}

func (*simulation) must(err error) {
	if err != nil {
		panic(err)
	}
}

// idle is true if no job arrives, waits to be looked at, or ends.
func (s *simulation) idle() bool {
	return s.arrived == len(s.Jobs) && len(s.stopped) == 0 && len(s.paused) == 0 && len(s.ends()) == 0 && len(s.queues.Dump()) == 0
}

// step is a second in which jobs arrive and end, and the scheduler looks at the queues once.
func (s *simulation) step() {
	s.clock.Step(time.Second)
	if len(s.queues.Dump()) == 0 {
		s.skip()
	}
	for s.arrived < len(s.Jobs) && !s.clock.Now().Before(s.arrival()) {
		s.arrive(s.Jobs[s.arrived])
		s.arrived++
	}
	s.finish()
	s.end()
	s.resume()
	if len(s.queues.Dump()) > 0 {
		schedule(s.scheduler, s.ctx)
		s.observe()
	}
}

// skip sets the clock to when the next job arrives or ends.
func (s *simulation) skip() {
	next := slices.AppendSeq(slices.Collect(maps.Values(s.stopped)), maps.Values(s.paused))
	next = slices.AppendSeq(next, maps.Values(s.ends()))
	if s.arrived < len(s.Jobs) {
		next = append(next, s.arrival())
	}
	if first := slices.MinFunc(next, time.Time.Compare); first.After(s.clock.Now()) {
		s.clock.SetTime(first)
	}
}

func (s *simulation) arrival() time.Time {
	return begin.Add(time.Duration(s.arrived+1) * s.Apart)
}

func (s *simulation) arrive(job Job) {
	w := &queue.Workload{
		ObjectMeta: api.ObjectMeta{Name: job.Name, Namespace: job.Queue, UID: types.UID(job.Name),
			CreationTimestamp: api.NewTime(s.clock.Now())},
		Spec: queue.WorkloadSpec{QueueName: "default-queue", Priority: &job.Priority, PodSets: []queue.PodSet{{
			Name: "main", Count: max(1, job.Pods), Template: core.PodTemplateSpec{Spec: core.PodSpec{Containers: []core.Container{{
				Name: "main", Resources: core.ResourceRequirements{Requests: core.ResourceList{
					GPU: *resource.NewQuantity(job.GPUs, resource.DecimalSI),
					CPU: *resource.NewQuantity(job.CPUs, resource.DecimalSI)}},
			}}}},
		}}},
	}
	s.api.workloads[client.ObjectKeyFromObject(w)] = w
	s.must(s.queues.AddOrUpdateWorkload(s.log, w.DeepCopy()))
}

// end does what Kueue's job controllers do when the last pod of a preempted job is gone.
func (s *simulation) end() {
	for _, key := range sortedKeys(s.stopped) {
		if s.clock.Now().Before(s.stopped[key]) {
			continue
		}
		delete(s.stopped, key)
		late := s.Ever[key.Name] <= s.Late
		if !late {
			s.pause(key)
		}
		w := s.api.workloads[key].DeepCopy()
		s.must(patching.PatchAdmissionStatus(s.ctx, s.api, w, s.clock, func(w *queue.Workload) (bool, error) {
			evicted := meta.FindStatusCondition(w.Status.Conditions, queue.WorkloadEvicted)
			workload.SetRequeuedCondition(w, evicted.Reason, evicted.Message, true)
			return workload.UnsetQuotaReservationWithCondition(w, queue.WorkloadPending, evicted.Message, s.clock.Now()), nil
		}))
		if late {
			s.observe()
			s.pause(key)
		}
	}
	s.observe()
}

// ends is when the running jobs end by themselves.
func (s *simulation) ends() map[client.ObjectKey]time.Time {
	ends := map[client.ObjectKey]time.Time{}
	for key, since := range s.admitted {
		if s.Runs != nil {
			ends[key] = since.Add(s.Runs(key.Name))
		}
	}
	return ends
}

func (s *simulation) finish() {
	ends := s.ends()
	for _, key := range sortedKeys(ends) {
		if s.clock.Now().Before(ends[key]) {
			continue
		}
		name := workload.Key(s.api.workloads[key])
		delete(s.admitted, key)
		delete(s.api.workloads, key)
		s.note("%s has ended", key.Name)
		s.queues.QueueAssociatedInadmissibleWorkloadsAfter(s.ctx, name, func() {
			s.must(s.cache.DeleteWorkload(s.log, name))
		})
	}
	s.observe()
}

// pause writes what keeps Kueue from queueing a job again before the end of its pause.
func (s *simulation) pause(key client.ObjectKey) {
	if s.Pause == nil {
		return
	}
	since := meta.FindStatusCondition(s.api.workloads[key].Status.Conditions, queue.WorkloadEvicted).LastTransitionTime
	left := since.Add(s.Pause(s.counted(key))).Sub(s.clock.Now())
	if left <= 0 {
		return
	}
	s.paused[key] = s.clock.Now().Add(left)
	s.Paused += left
	s.note("%s is queued again in %s", key.Name, left)
	s.patch(key, func(w *queue.Workload) {
		w.Status.RequeueState = &queue.RequeueState{RequeueAt: &api.Time{Time: s.paused[key]}}
	})
}

// resume does what our controller does when a pause is over.
func (s *simulation) resume() {
	for _, key := range sortedKeys(s.paused) {
		if s.clock.Now().Before(s.paused[key]) {
			continue
		}
		delete(s.paused, key)
		if by := preemptor(s.api.workloads[key]); s.Holds > 0 && s.counted(key) >= s.Holds && s.unfinished(by) {
			s.held[key] = by
			s.note("%s waits for %s to end", key.Name, by)
		} else {
			s.queueAgain(key)
		}
	}
	for _, key := range sortedKeys(s.held) {
		if !s.unfinished(s.held[key]) {
			delete(s.held, key)
			s.queueAgain(key)
		}
	}
	s.observe()
}

func (s *simulation) queueAgain(key client.ObjectKey) {
	s.patch(key, func(w *queue.Workload) {
		w.Status.RequeueState = nil
		workload.SetRequeuedCondition(w, queue.WorkloadBackoffFinished, "", true)
	})
}

// counted is how many preemptions of a job count for our controller.
func (s *simulation) counted(key client.ObjectKey) int {
	if meta.FindStatusCondition(s.api.workloads[key].Status.Conditions, queue.WorkloadPreempted).Reason == queue.InClusterQueueReason {
		return max(0, s.Ever[key.Name]-s.Own)
	}
	return s.Ever[key.Name]
}

// preemptor is the job for which one was preempted last.
func preemptor(w *queue.Workload) string {
	_, rest, _ := strings.Cut(meta.FindStatusCondition(w.Status.Conditions, queue.WorkloadPreempted).Message, "(UID: ")
	uid, _, _ := strings.Cut(rest, ",")
	return uid
}

func (s *simulation) unfinished(job string) bool {
	for key := range s.api.workloads {
		if key.Name == job {
			return true
		}
	}
	return false
}

func (s *simulation) patch(key client.ObjectKey, change func(*queue.Workload)) {
	w := s.api.workloads[key].DeepCopy()
	s.must(patching.PatchAdmissionStatus(s.ctx, s.api, w, s.clock, func(w *queue.Workload) (bool, error) {
		change(w)
		return true, nil
	}))
}

// observe does what Kueue's Workload controller does when Workloads have changed.
func (s *simulation) observe() {
	for len(s.api.changed) > 0 {
		changed := s.api.changed
		s.api.changed = map[client.ObjectKey]*queue.Workload{}
		for _, key := range sortedKeys(changed) {
			s.update(key, changed[key], s.api.workloads[key].DeepCopy())
		}
	}
	s.requeuer.ProcessRequeues(s.ctx)
}

func (s *simulation) update(key client.ObjectKey, before, now *queue.Workload) {
	had, has := workload.HasQuotaReservation(before), workload.HasQuotaReservation(now)
	name := workload.Key(now)
	switch {
	case !had && !has:
		s.must(s.queues.AddOrUpdateWorkload(s.log, now))
	case !had && has:
		if _, before := s.Started[key.Name]; !before {
			s.Started[key.Name] = s.clock.Since(begin)
		}
		s.admitted[key] = s.clock.Now()
		s.note("%s starts", key.Name)
		if _, paused := s.paused[key]; paused { // the controller was late, and Kueue was about to look at it
			delete(s.paused, key)
			delete(s.held, key)
			s.patch(key, func(w *queue.Workload) { w.Status.RequeueState = nil })
		}
		s.queues.DeleteWorkload(s.log, name)
		s.cache.AddOrUpdateWorkload(s.log, now)
	case had && !has:
		s.queues.QueueAssociatedInadmissibleWorkloadsAfter(s.ctx, name, func() {
			s.must(s.cache.DeleteWorkload(s.log, name))
			if _, paused := s.paused[key]; !paused {
				s.must(s.queues.AddOrUpdateWorkloadWithoutLock(s.log, now))
			}
			s.queues.DeleteSecondPassWithoutLock(name)
		})
	default:
		s.cache.AddOrUpdateWorkload(s.log, now)
	}
	if evict.IsEvicted(now) && has && !evict.IsEvicted(before) {
		s.preempted(key, now)
	}
}

func (s *simulation) preempted(key client.ObjectKey, w *queue.Workload) {
	s.stopped[key] = s.clock.Now().Add(s.Stopping(key.Name))
	why := meta.FindStatusCondition(w.Status.Conditions, queue.WorkloadPreempted)
	s.note("%s is preempted: %s: %s", key.Name, why.Reason, why.Message)
	s.Ever[key.Name]++
	s.By[key.Name] = append(s.By[key.Name], preemptor(w))
	if s.arrived == len(s.Jobs) {
		s.Preemptions[key.Name]++
		gpus := w.Status.Admission.PodSetAssignments[0].ResourceUsage[GPU]
		s.Lost += time.Duration(gpus.Value()) * s.clock.Since(s.admitted[key])
	}
	delete(s.admitted, key)
}

func (s *simulation) note(format string, arguments ...any) {
	at := s.clock.Since(begin)
	s.Log = append(s.Log, fmt.Sprintf("%6s ", at)+fmt.Sprintf(format, arguments...))
}

func sortedKeys[V any](m map[client.ObjectKey]V) []client.ObjectKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b client.ObjectKey) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
}
