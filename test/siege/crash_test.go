// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// crashes says which pods of the platform have ended since the beginning, and who has panicked. Programs end by
// themselves when they lose the lease of the leader, as on a machine that has too much to do: that is no crash.
func (w *world) crashes() (all []string) {
	w.Helper()
	now, err := w.restarts(context.WithoutCancel(w.Context()))
	if err != nil {
		return []string{err.Error()}
	}
	for name, before := range w.began {
		after, is := now[name]
		lost, panics := w.read(name)
		if !is || after-before > lost {
			all = append(all, fmt.Sprintf("%s ended: it had %d restarts before, and has %d now, %d of them for a lost lease", name, before, after, lost))
		}
		all = append(all, panics...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// read looks for the ends of a program in its log.
func (w *world) read(pod string) (lost int, panics []string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.cluster.LogDir(), platform.Namespace+"_"+pod+".log"))
	if err != nil {
		return 0, []string{err.Error()}
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "leader election lost") || strings.Contains(line, "leaderelection lost") {
			lost++
		}
		if strings.Contains(line, "Observed a panic") || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			panics = append(panics, fmt.Sprintf("%s: %.600s", pod, strings.TrimSpace(line)))
		}
	}
	return lost, panics
}
