// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// pages has so many pages of AppWrappers, and of their Workloads, whose pods have much text.
type pages struct {
	client.Reader
	count int
}

// text is how much of it there is of each object.
const text = 20_000

func (p pages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var number int
	if asked := (&client.ListOptions{}).ApplyOptions(options); asked.Continue != "" {
		if _, err := fmt.Sscan(asked.Continue, &number); err != nil {
			return err
		}
	}
	if number+1 < p.count {
		list.SetContinue(fmt.Sprint(number + 1))
	}
	for i := range Page {
		uid := types.UID(fmt.Sprintf("%d-%d", number, i))
		switch l := list.(type) {
		case *v1beta2.AppWrapperList:
			aw := v1beta2.AppWrapper{}
			aw.UID, aw.Status.Phase = uid, v1beta2.AppWrapperRunning
			aw.Spec.Components = make([]v1beta2.AppWrapperComponent, 1)
			aw.Spec.Components[0].Template.Raw = []byte(`{"note":"` + strings.Repeat("x", text) + `"}`)
			l.Items = append(l.Items, aw)
		case *kueue.WorkloadList:
			w := kueue.Workload{}
			w.UID = uid
			w.Spec.PodSets = make([]kueue.PodSet, 1)
			w.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Command: []string{strings.Repeat("x", text)}}}
			l.Items = append(l.Items, w)
		}
	}
	return nil
}

// Of 2,000 AppWrappers with 20 kB each, and as many Workloads, little is kept.
func TestUsageKeepsNoTemplates(t *testing.T) {
	retained := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const count = 4
	before := retained()
	o, err := Usage(t.Context(), pages{count: count}, "blue", "blue")
	after := retained()
	if err != nil || len(o.AppWrappers) != count*Page || len(o.Workloads) != count*Page || len(o.Unread) > 0 {
		t.Fatalf("it has %d AppWrappers and %d Workloads, %q, %v", len(o.AppWrappers), len(o.Workloads), o.Unread, err)
	}
	if kept, most := int64(after)-int64(before), int64(2*count*Page*text/4); kept > most { //nolint:gosec // both are far below 2^63
		t.Errorf("it keeps %d bytes, and may keep %d", kept, most)
	}
	runtime.KeepAlive(o)
}
