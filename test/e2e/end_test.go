// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mlbatch/mlbatch/tools/localcluster"
)

// keepVariable keeps the cluster after the run, to look at what went wrong, and
// uses one that was kept.
const keepVariable = "MLBATCH_E2E_KEEP"

func kept() bool { return os.Getenv(keepVariable) != "" }

// leftByOthers is what lay on this machine before our cluster was made.
var leftByOthers []string

// endEarlier removes the cluster of a run that was killed before it could do so:
// its objects and its controller are not those of this run.
func endEarlier(context.Context) error {
	if kept() {
		return nil
	}
	if err := site.Cluster.Down(); err != nil {
		return err
	}
	var err error
	leftByOthers, err = localcluster.Leaks(site.Cluster.Config())
	return err
}

// tearDown removes the cluster; that anything of it stays behind is an error.
func tearDown() error {
	if kept() {
		fmt.Fprintf(os.Stderr, "kept: export KUBECONFIG=%s\n", site.Cluster.KubeconfigPath())
		return nil
	}
	var unsaved error
	if !connected {
		unsaved = saveLogs()
	}
	if err := site.Cluster.Down(); err != nil {
		return errors.Join(unsaved, err)
	}
	leaks, err := localcluster.Leaks(site.Cluster.Config())
	leaks = slices.DeleteFunc(leaks, func(leak string) bool { return slices.Contains(leftByOthers, leak) })
	if err == nil && len(leaks) > 0 {
		err = fmt.Errorf("the cluster left behind: %q", leaks)
	}
	return errors.Join(unsaved, err)
}

// saveLogs keeps what the programs and pods of a cluster have written that did
// not become a platform: the cluster's folder is about to go.
func saveLogs() error {
	saved := filepath.Join(site.Checkout, "dist", "e2e-logs")
	if err := os.RemoveAll(saved); err != nil {
		return fmt.Errorf("cannot remove the logs of an earlier run: %w", err)
	}
	for _, logs := range []string{site.Cluster.LogDir(), podLogs()} {
		err := os.CopyFS(filepath.Join(saved, filepath.Base(logs)), os.DirFS(logs))
		if errors.Is(err, fs.ErrNotExist) { // the cluster did not come so far
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot save the logs: %w", err)
		}
		fmt.Fprintf(os.Stderr, "the set-up failed; %s was saved below %s\n", logs, saved)
	}
	return nil
}

// podLogs is where the node keeps the logs of pods.
func podLogs() string { return filepath.Join(site.Cluster.Dir(), "node", "log-pods") }
