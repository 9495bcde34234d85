// SPDX-License-Identifier: Apache-2.0

package echoes_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/internal/echoes"
)

// history is what has happened to an object: the versions that the API server has, that the
// cache has, and that our last write has made.
type history struct {
	pending              echoes.Pending
	stored, cached, ours uint64
}

var happenings = []struct {
	name   string
	happen func(*history)
}{
	{"we write", func(h *history) {
		h.stored++
		h.ours = h.stored
		h.pending.Expect(inVersion(h.ours), time.Time{})
	}},
	{"another writes, or makes it anew", func(h *history) { h.stored++ }},
	{"the cache hears of one change", func(h *history) { h.cached = min(h.cached+1, h.stored) }},
	{"the cache hears of the last change only", func(h *history) { h.cached = h.stored }},
	{"another process takes over", func(h *history) { h.pending, h.ours = echoes.Pending{}, 0 }},
}

// A wake-up that is lost is never made up for. So whatever happens in whatever order, a look is put
// off while our last write is on its way to the cache, which wakes us again, and never else.
func TestALookIsPutOffOnlyWhileOurOwnWriteIsOnItsWay(t *testing.T) {
	histories := [][]int{nil}
	for range 6 {
		var longer [][]int
		for _, before := range histories {
			for i := range happenings {
				longer = append(longer, append(slices.Clone(before), i))
			}
		}
		histories = longer
	}
	for _, story := range histories {
		h, told := &history{stored: 1, cached: 1}, []string(nil)
		for _, i := range story {
			happenings[i].happen(h)
			told = append(told, happenings[i].name)
			putOff := h.pending.Await(inVersion(h.cached), time.Time{}) > 0
			if putOff != (h.cached < h.ours) || putOff && h.cached == h.stored {
				t.Fatalf("put off: %t, though the cache has version %d of %d and our last was %d: %q", putOff, h.cached, h.stored, h.ours, told)
			}
		}
	}
}

func inVersion(version uint64) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: strconv.FormatUint(version, 10)}}
}

func TestAnEchoIsAwaitedForAWhile(t *testing.T) {
	began := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]time.Duration{0: echoes.Longest, echoes.Longest - 1: 1, echoes.Longest: 0} {
		var pending echoes.Pending
		pending.Expect(inVersion(7), began)
		if got := pending.Await(inVersion(6), began.Add(after)); got != want {
			t.Errorf("after %s it is awaited for %s, want %s", after, got, want)
		}
	}
}

func TestWhatIsForgottenOrOpaqueIsNotAwaited(t *testing.T) {
	var pending echoes.Pending
	opaque := inVersion(7)
	opaque.SetResourceVersion("seven")
	pending.Expect(opaque, time.Time{})
	if wait := pending.Await(inVersion(6), time.Time{}); wait > 0 {
		t.Errorf("a version that is no number is awaited for %s", wait)
	}
	pending.Expect(inVersion(7), time.Time{})
	pending.Forget(client.ObjectKeyFromObject(opaque))
	if wait := pending.Await(inVersion(6), time.Time{}); wait > 0 {
		t.Errorf("what was forgotten is awaited for %s", wait)
	}
}

// Whatever has a later version is the deletion, or comes after it.
func TestADeletionIsAwaited(t *testing.T) {
	var pending echoes.Pending
	pending.ExpectAfter(inVersion(7), time.Time{})
	if pending.Await(inVersion(7), time.Time{}) == 0 || pending.Await(inVersion(8), time.Time{}) > 0 {
		t.Error("not as long as the object has the version that was deleted")
	}
}

func TestWhatWasCreatedIsAwaitedWhileItIsAbsent(t *testing.T) {
	created := inVersion(7)
	key := client.ObjectKeyFromObject(created)
	var pending echoes.Pending
	if pending.AwaitCreated(key, time.Time{}) > 0 {
		t.Error("nothing was created")
	}
	pending.Expect(created, time.Time{})
	if pending.AwaitCreated(key, time.Time{}) != echoes.Longest || pending.AwaitCreated(key, time.Time{}.Add(echoes.Longest)) > 0 {
		t.Error("not as long as it may take")
	}
}

// Nobody may ever look again at what was written to.
func TestWhatNobodyLooksAtIsForgotten(t *testing.T) {
	var pending echoes.Pending
	first := inVersion(7)
	pending.Expect(first, time.Time{})
	later := time.Time{}.Add(echoes.Longest)
	for i := range 5000 {
		other := inVersion(8)
		other.SetName(strconv.Itoa(i))
		pending.Expect(other, later)
	}
	if pending.Await(inVersion(6), time.Time{}) > 0 {
		t.Error("thousands later, it is remembered")
	}
}
