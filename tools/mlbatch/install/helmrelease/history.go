// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

// History is Helm's record of a release.
type History struct {
	Helm *action.Configuration
	// Last is the newest revision, Complete the newest one whose installation completed.
	// Each is nil if there is none.
	Last, Complete *release.Release
	// Elsewhere is another namespace that has the release, if this one does not have it.
	Elsewhere string
	// listError is why other namespaces could not be searched: users who may read one
	// namespace may not be allowed to read all.
	listError error
}

// ReadHistory reads what Helm stored of the release. The user needs the right to read
// Secrets in its namespace.
func (r Release) ReadHistory(c access.Cluster) (History, error) {
	m := History{}
	everywhere, err := c.Helm("")
	if err != nil {
		return m, err
	}
	if m.Helm, err = c.Helm(r.Namespace); err != nil {
		return m, err
	}
	if m.Last, m.Complete, err = r.Revisions(m.Helm.Releases); err == nil && m.Last == nil {
		m.Elsewhere, m.listError = r.lookElsewhere(everywhere.Releases)
	}
	return m, err
}

// Revisions returns the newest revision, and the newest one whose installation completed.
func (r Release) Revisions(releases *storage.Storage) (last, complete *release.Release, err error) {
	history, err := releases.History(r.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, r.unreadable("namespace "+r.Namespace, err)
	}
	for _, known := range history {
		if last == nil || known.Version > last.Version {
			last = known
		}
		done := known.Info.Status == release.StatusDeployed || known.Info.Status == release.StatusSuperseded
		if done && (complete == nil || known.Version > complete.Version) {
			complete = known
		}
	}
	return last, complete, nil
}

// lookElsewhere returns another namespace that has a release with this name and a chart of
// the same name, as our releases have, or "".
func (r Release) lookElsewhere(everywhere *storage.Storage) (string, error) {
	history, err := everywhere.History(r.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return "", nil
	}
	if err != nil {
		return "", r.unreadable("all namespaces", err)
	}
	for _, known := range history {
		if known.Namespace != r.Namespace && known.Chart.Metadata.Name == r.Name {
			return known.Namespace, nil
		}
	}
	return "", nil
}

// CheckNamespace returns an error if the release is in another namespace.
func (m History) CheckNamespace(what, flag string) error {
	switch {
	case m.Last != nil:
		return nil
	case m.Elsewhere != "":
		return fmt.Errorf("%s is in namespace %s: use %s %s", what, m.Elsewhere, flag, m.Elsewhere)
	}
	return m.listError
}

// Present reports whether the release exists and is not yet uninstalled.
func (m History) Present() bool {
	return m.Last != nil && m.Last.Info.Status != release.StatusUninstalled
}

// unreadable returns the error for records of Helm that cannot be read.
func (r Release) unreadable(where string, err error) error {
	if apierrors.IsForbidden(err) {
		return errors.New(preflight.Denied("list secrets in " + where))
	}
	return fmt.Errorf("cannot read the release %s in %s: %w", r.Name, where, err)
}

// CheckChart returns an error if the release has another chart.
func (r Release) CheckChart(chart string, last *release.Release) error {
	if last == nil || last.Chart.Metadata.Name == chart {
		return nil
	}
	return fmt.Errorf("the release %s in namespace %s has the chart %s, which is not ours: choose another --namespace", r.Name, r.Namespace, last.Chart.Metadata.Name)
}
