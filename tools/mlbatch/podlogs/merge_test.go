// SPDX-License-Identifier: Apache-2.0

package podlogs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
)

// The time is as the API server writes it: without zeros at its end.
func TestLogsAreMergedByTime(t *testing.T) {
	stored := map[string]string{
		"a": "2026-01-01T00:00:00.1Z first\n2026-01-01T00:00:02Z third\nand more of it\n2026-01-01T00:00:03Z \n",
		"b": "2026-01-01T00:00:01.12Z second\n2026-01-01T00:00:04Z last",
		"c": "",
	}
	open := func(_ context.Context, _, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		switch {
		case !o.Timestamps:
			t.Error("without times nothing can be merged")
		case pod == "d":
			return nil, errors.New("it waits")
		case pod == "e":
			return io.NopCloser(iotest.ErrReader(errors.New("unexpected EOF"))), nil
		}
		return io.NopCloser(strings.NewReader(stored[pod])), nil
	}
	var pods []corev1.Pod
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}})
	}
	var out bytes.Buffer
	err := podlogs.Merged(t.Context(), open, podlogs.Sorted(pods), &out, func(p podlogs.Pod) string { return p.Name })
	wording.Wanted(t, err, "cannot read the log of pod d, which is Pending: it waits; the log of pod e broke off: unexpected EOF")
	if want := "[a] first\n[b] second\n[a] third\n[a] and more of it\n[a] \n[b] last\n"; out.String() != want {
		t.Errorf("got %q", &out)
	}
}
