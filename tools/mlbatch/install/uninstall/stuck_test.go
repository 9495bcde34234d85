// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatNeedsItsOperatorToGo(t *testing.T) {
	kueue := func(kind string) schema.GroupKind { return schema.GroupKind{Group: "kueue.x-k8s.io", Kind: kind} }
	appWrapper := schema.GroupKind{Group: "workload.codeflare.dev", Kind: "AppWrapper"}
	held := metav1.ObjectMeta{Finalizers: []string{"somebody.dev/holds"}}
	leaving := metav1.ObjectMeta{Finalizers: held.Finalizers, DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}
	for name, c := range map[string]struct {
		kind schema.GroupKind
		meta metav1.ObjectMeta
		want bool
	}{
		"work that is held":             {appWrapper, held, true},
		"work that nobody holds":        {appWrapper, metav1.ObjectMeta{}, false},
		"what Kueue knows of work":      {kueue("Workload"), held, true},
		"a queue, which stays":          {kueue("ClusterQueue"), held, false},
		"a queue that is being deleted": {kueue("ClusterQueue"), leaving, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := getsStuck(c.kind, &metav1.PartialObjectMetadata{ObjectMeta: c.meta}); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWhatWouldBeStrandedIsCounted(t *testing.T) {
	if got := describeStuck(nil); got != "" {
		t.Errorf("of nothing it says %q", got)
	}
	got := describeStuck([]stuckObject{{"Workload", "blue/b", true}, {"AppWrapper", "red/train", false}, {"AppWrapper", "blue/train", false}})
	if want := "only the platform can delete 2 AppWrapper, 1 Workload, such as AppWrapper blue/train"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhoHasJustDeletedAllOfItIsToldToWait(t *testing.T) {
	for want, all := range map[string][]stuckObject{
		"delete that work first": {{"Workload", "blue/b", true}, {"AppWrapper", "blue/train", false}},
		"they are all being deleted: wait a few seconds and run the command again": {{"Workload", "blue/b", true}},
	} {
		if got := adviceFor(all); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
