// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"

	"helm.sh/helm/v3/pkg/release"
)

// verb is what the user asked for.
type verb string

const (
	install verb = "install"
	upgrade verb = "upgrade"
	// ensure installs or upgrades, whichever is needed.
	ensure verb = "ensure"
)

// move is what the installer does with a release.
type move string

const (
	create move = "installed"
	change move = "upgraded"
	// resume is change after an earlier run was interrupted.
	resume move = "completed"
	stay   move = "unchanged"
)

// state is the observed state of a release.
type state struct {
	// status is Helm's status of the last revision; empty if there is no release.
	status release.Status
	// deployed is set if the installation of any revision completed.
	deployed bool
	// pending says that another command may be working on the release.
	pending error
	// same is set if chart, values and objects are as wanted.
	same bool
}

// decide returns the next move, or an error that says why there is none.
func decide(v verb, name string, s state) (move, error) {
	switch s.status {
	case "":
		if v == upgrade {
			return "", fmt.Errorf("the release %s is not installed: run 'mlbatch install' first", name)
		}
		return create, nil
	case release.StatusUninstalling, release.StatusUninstalled:
		return "", fmt.Errorf("the release %s was not completely uninstalled: run 'mlbatch uninstall' first", name)
	case release.StatusDeployed:
		return decideComplete(v, name, s)
	}
	if s.deployed && v == install {
		return "", fmt.Errorf("an upgrade of the release %s was interrupted: resume with 'mlbatch upgrade'", name)
	}
	if s.pending != nil {
		return "", s.pending
	}
	return resume, nil
}

func decideComplete(v verb, name string, s state) (move, error) {
	if s.same {
		return stay, nil
	}
	if v == install {
		return "", fmt.Errorf("the release %s is already installed with a different chart or values, or some objects are missing: change it with 'mlbatch upgrade'", name)
	}
	return change, nil
}
