// SPDX-License-Identifier: Apache-2.0

package slackquota

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// file is a cluster whose teams file may have its slack queue, with all nodes in one flavor.
type file struct {
	*cluster
	declared Declarations
}

// says is what the teams file has now: the nominal quota and the lending limit, empty if there is none.
func (f *file) says(nominal, limit string) {
	f.Helper()
	d := &Declaration{CohortName: "research", ResourceGroups: []kueue.ResourceGroup{group("all", corev1.ResourceList{gpu: amount(nominal)})}}
	if limit != "" {
		own := amount(limit)
		d.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit = &own
	}
	f.declared = Declarations{"slack-cluster-queue": d}
}

// step decides as a controller does that has just started.
func (f *file) step() Step {
	nodes := f.all()
	return Keep("slack-cluster-queue", f.queue, f.declared, Find(f.rules, f.flavors, nodes, Parse(nil).Learn(nodes)))
}

// settle does what is decided, and fails if that takes more than one write.
func (f *file) settle() {
	f.Helper()
	switch step := f.step(); step.Verb {
	case Leave:
		return
	case Make:
		f.queue = &kueue.ClusterQueue{}
		if err := json.Unmarshal(step.Body, f.queue); err != nil {
			f.Fatal(err)
		}
		f.touch(FieldOwner)
	case Patch:
		f.apply(step.Body)
	case Remove:
		f.queue = nil
	}
	if again := f.step(); again.Verb != Leave {
		f.Errorf("it writes again although nothing has changed: %s", again.Body)
	}
}

func newFile(t *testing.T, nodes ...*corev1.Node) *file {
	t.Helper()
	f := &file{cluster: newCluster(t, "0", nodes...)}
	f.queue = nil
	return f
}

func TestTheTeamsFileMakesChangesAndRemovesAQueue(t *testing.T) {
	a := nodeOf("a", 4)
	f := newFile(t, a, nodeOf("b", 4))
	if f.settle(); f.queue != nil {
		t.Fatal("there is a queue that nobody wants")
	}
	for _, row := range []struct {
		what           string
		change         func()
		nominal, lends string
	}{
		{"the file gets it", func() { f.says("6", "") }, "6", ""},
		{"a node is bad", func() { a.Spec.Unschedulable = true }, "6", "2"},
		{"the file has more", func() { f.says("8", "") }, "8", "4"},
		{"the quota is edited by hand", func() { f.quota("all", gpu).NominalQuota = count(100) }, "8", "4"},
		{"the node is back", func() { a.Spec.Unschedulable = false }, "8", ""},
		{"it is deleted by hand", func() { f.queue = nil }, "8", ""},
		{"it is made while a node is bad", func() { f.queue, a.Spec.Unschedulable = nil, true }, "8", "4"},
	} {
		t.Log(row.what)
		row.change()
		f.settle()
		f.lends("all", gpu, row.lends)
		if nominal := f.quota("all", gpu).NominalQuota; nominal.Cmp(amount(row.nominal)) != 0 {
			t.Errorf("the nominal quota is %v, want %s", &nominal, row.nominal)
		}
	}
	if f.queue.Spec.NamespaceSelector != nil {
		t.Error("a namespace can use the queue itself")
	}
	f.declared = nil
	if f.settle(); f.queue != nil {
		t.Error("the queue stays although the file does not have it any more")
	}
}

// Whoever was the last to say a limit, the file or an administrator, is right.
func TestAnAdministratorsLimitSurvivesTheTeamsFile(t *testing.T) {
	a := nodeOf("a", 4)
	f := newFile(t, a, nodeOf("b", 4))
	for _, row := range []struct {
		what   string
		change func()
		lends  string
	}{
		{"the file has a limit", func() { f.says("8", "7") }, "7"},
		{"the nodes give less", func() { a.Spec.Unschedulable = true }, "4"},
		{"the nodes are back", func() { a.Spec.Unschedulable = false }, "7"},
		{"an administrator sets another", func() { f.limit("all", gpu, "5") }, "5"},
		{"the file gets more quota", func() { f.says("10", "7") }, "5"},
		{"the nodes give less than that", func() { f.says("8", "7"); a.Spec.Unschedulable = true }, "4"},
		{"the file gets less quota meanwhile", func() { f.says("7", "7") }, "3"},
		{"the nodes are back again", func() { a.Spec.Unschedulable = false }, "5"},
		{"the file has less quota than the limit", func() { f.says("4", "") }, ""},
		{"an administrator sets a limit", func() { f.limit("all", gpu, "3") }, "3"},
		{"the file has even less", func() { f.says("2", "") }, "2"},
		{"and more again", func() { f.says("8", "") }, "3"},
		{"the file gets a limit of its own", func() { f.says("8", "6") }, "6"},
		{"the nodes give less once more", func() { a.Spec.Unschedulable = true }, "4"},
		{"the file gets what is lent now as its limit", func() { f.says("8", "4") }, "4"},
		{"all nodes are there", func() { a.Spec.Unschedulable = false }, "4"},
		{"an administrator removes it", func() { f.limit("all", gpu, "") }, ""},
	} {
		t.Log(row.what)
		row.change()
		f.settle()
		f.lends("all", gpu, row.lends)
	}
	f.mustHaveNoNote()
}

// A queue that the controller has not made may have been made by anybody, also by an older file of the teams.
func TestAQueueOfSomebodyElseIsAdopted(t *testing.T) {
	a := nodeOf("a", 4)
	f := newFile(t, a, nodeOf("b", 4))
	f.queue = slackQueue(group("all", corev1.ResourceList{gpu: count(6)}))
	f.queue.Annotations = map[string]string{"other": "stays"}
	f.says("8", "7")
	want := f.queue.DeepCopy()
	if f.settle(); f.step().Verb != Leave || !cmp.Equal(want, f.queue) {
		t.Errorf("it was changed: %s", cmp.Diff(want, f.queue))
	}
	a.Spec.Unschedulable = true
	f.settle()
	f.lends("all", gpu, "2")
	f.declared = nil
	f.settle()
	a.Spec.Unschedulable = false
	if f.settle(); f.queue == nil {
		t.Fatal("it was removed")
	}
	f.lends("all", gpu, "")
	f.mustHaveNoNote()
}

func TestOtherFieldsAndAnnotationsOfTheQueueStay(t *testing.T) {
	f := newFile(t, nodeOf("a", 8))
	f.says("6", "")
	f.settle()
	stop := kueue.Hold
	f.queue.Spec.StopPolicy, f.queue.Annotations["other"] = &stop, "stays"
	f.says("8", "")
	f.settle()
	if f.queue.Spec.StopPolicy == nil || f.queue.Annotations["other"] != "stays" {
		t.Errorf("got %+v", f.queue)
	}
	delete(f.queue.Annotations, v1beta2.DeclaredLendingLimitsAnnotation)
	f.declared = nil
	if f.settle(); f.queue == nil {
		t.Error("it was removed although the annotation was")
	}
}

func TestAQueueThatIsBeingDeletedIsNotWritten(t *testing.T) {
	f := newFile(t, nodeOf("a", 8))
	f.says("6", "")
	f.settle()
	f.queue.DeletionTimestamp = &metav1.Time{}
	f.says("8", "")
	if step := f.step(); step.Verb != Leave {
		t.Errorf("got %+v", step)
	}
}

// A ConfigMap that is damaged must not remove quota.
func TestADeclarationThatCannotBeReadLeavesTheQueue(t *testing.T) {
	a := nodeOf("a", 4)
	f := newFile(t, a, nodeOf("b", 4))
	f.says("6", "")
	f.settle()
	f.declared = Declarations{"slack-cluster-queue": nil}
	if f.settle(); f.queue == nil {
		t.Fatal("it was removed")
	}
	a.Spec.Unschedulable = true
	f.settle()
	f.lends("all", gpu, "2")
	f.queue = nil
	if f.settle(); f.queue != nil {
		t.Error("something was made of it")
	}
}
