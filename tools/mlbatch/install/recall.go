// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
)

// memory is what Helm remembers of a release.
type memory struct {
	helm *action.Configuration
	// last is the newest revision, complete the newest one that was installed to its end;
	// nil if there is none.
	last, complete *release.Release
	// elsewhere is another namespace that has the release, if this one has not.
	elsewhere string
	// unseen is why nobody could look there: not everybody who may read one namespace
	// may read all.
	unseen error
}

func (r Release) recall(c Cluster) (memory, error) {
	m := memory{}
	everywhere, err := c.helm("")
	if err != nil {
		return m, err
	}
	if m.helm, err = c.helm(r.Namespace); err != nil {
		return m, err
	}
	if m.last, m.complete, err = r.revisions(m.helm.Releases); err == nil && m.last == nil {
		m.elsewhere, m.unseen = r.lookElsewhere(everywhere.Releases)
	}
	return m, err
}

// revisions are the newest one, and the newest one that was installed to its end.
func (r Release) revisions(releases *storage.Storage) (last, complete *release.Release, err error) {
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

// lookElsewhere returns another namespace that has a release of the name, and of the chart
// of that name as ours are, or "".
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

// refuseElsewhere knows that a release is not absent that is in another namespace.
func (m memory) refuseElsewhere(what, flag string) error {
	switch {
	case m.last != nil:
		return nil
	case m.elsewhere != "":
		return fmt.Errorf("%s is in namespace %s: use %s %s", what, m.elsewhere, flag, m.elsewhere)
	}
	return m.unseen
}

// present is whether there is a release of which not everything was told to go.
func (m memory) present() bool {
	return m.last != nil && m.last.Info.Status != release.StatusUninstalled
}

// unreadable says why Helm does not know of a release.
func (r Release) unreadable(where string, err error) error {
	if apierrors.IsForbidden(err) {
		return errors.New(preflight.Denied("list secrets in " + where))
	}
	return fmt.Errorf("cannot read the release %s in %s: %w", r.Name, where, err)
}
