// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package faults_test

import (
	"flag"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/bench"
)

var beside = flag.Bool("faults.rivals", false, "inject the same faults where JobSet and Kueue run the same pods")

// rival runs pods without an AppWrapper.
type rival struct {
	name, namespace string
	// prepare creates what all of its jobs need.
	prepare func(*testing.T)
	// run is an object whose pods are those of a Job.
	run func(batchv1.JobSpec) client.Object
	// follow calls the function whenever the status of the object says that something is wrong.
	follow func(t *testing.T, name string, wrong func())
}

var rivals = []rival{jobSets, replacement}

const (
	// untilKubernetesEvicts pods of a lost node: after five minutes, and a node waits for ten seconds at most.
	untilKubernetesEvicts = 6 * time.Minute
	ofRival               = "faults.example.com/rival"
	ofContender           = "faults.example.com/job"
)

func prepareRivals(t *testing.T) {
	t.Helper()
	for _, r := range rivals {
		r.prepare(t)
	}
}

// underRivals injects each fault under a job of each rival, which has nodes of its own. Nothing of what follows is
// asserted.
func underRivals(t *testing.T) []bench.RivalFault {
	all := make([]bench.RivalFault, len(faults)*len(rivals))
	var o order
	t.Run("at once", func(t *testing.T) {
		for i, f := range faults {
			for k, r := range rivals {
				t.Run(r.name+": "+f.sentence, func(t *testing.T) {
					o.starting.Add(1)
					t.Parallel()
					all[i*len(rivals)+k] = f.under(t, r, &o)
				})
			}
		}
	})
	for _, r := range rivals {
		all = append(all,
			bench.RivalFault{By: r.name, Says: reclaims, Without: "quota is Kueue's, whoever runs the pods"},
			bench.RivalFault{By: r.name, Says: idles, Without: "it does not ask whether GPUs are used"})
	}
	return slices.DeleteFunc(all, func(r bench.RivalFault) bool { return r.By == "" }) // -run left it out
}

// order: all jobs run before the first fault, and then a fault has the cluster for itself for some seconds, so that
// times are not those of a busy machine. What takes minutes begins first, and goes on beside the others.
type order struct {
	starting sync.WaitGroup
	turn     sync.Mutex
}

func (o *order) start(c *contender) {
	defer o.starting.Done()
	if c.notForRivals == "" {
		c.start()
	}
}

func (o *order) hit(c *contender) {
	o.starting.Wait()
	if c.rivalsIn == 0 {
		o.turn.Lock()
		defer o.turn.Unlock()
	}
	c.hit()
	_ = c.wait(3 * time.Second) // it may take longer
}

// under tells the story of a fault under a rival.
func (f fault) under(t *testing.T, by rival, o *order) bench.RivalFault {
	r := bench.RivalFault{By: by.name, Says: f.sentence, Without: f.notForRivals}
	c := newContender(t, f, by)
	o.start(c)
	if r.Without != "" {
		return r
	}
	o.hit(c)
	harmless := f.cause == ""
	if r.Limit.Duration = max(f.rivalsIn, time.Minute); harmless || f.fails {
		r.Limit.Duration = seconds
		time.Sleep(seconds) // it may do what it should not
	} else if err := c.wait(r.Limit.Duration); err != nil {
		t.Log(err)
	}
	seen := c.fall.Reaction(by.name, f.sentence)
	r.Found, r.Again = duration(seen.Detected.P50), duration(seen.Again.P50)
	if stopped := duration(seen.Reset.P50); harmless && r.Found.Duration == 0 {
		r.Found = stopped
	}
	t.Logf("%s, %s: found after %s, runs again after %s", r.By, r.Says, r.Found.Duration, r.Again.Duration)
	return r
}

func duration(milliseconds float64) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(milliseconds * float64(time.Millisecond))}
}

// spec is that of our Job. Each rival is told in its own way which exit code is final.
func (f fault) spec(name, by string) batchv1.JobSpec {
	spec := newJob(name, max(f.pods, 1), gpusOfAPod, f.edit).Spec
	spec.Template.Labels = map[string]string{ofContender: name}
	spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: name, ofRival: by}
	if code, err := strconv.ParseInt(f.annotations[workload.TerminalExitCodesAnnotation], 10, 32); err == nil {
		spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:      batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{int32(code)}},
		}}}
	}
	return spec
}
