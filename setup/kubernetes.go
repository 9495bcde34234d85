// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// OtherKubernetes is a version of Kubernetes for a local cluster, and of the coscheduler's module if
// ours is too new for it.
type OtherKubernetes struct {
	Kubernetes  string `json:"kubernetes"`
	Coscheduler string `json:"coscheduler,omitempty"`
}

// On returns the versions of a local cluster with another minor version of Kubernetes, such as 1.30.
// If it is empty, or the usual one, nothing changes. An unknown one is an error that names those
// there are.
func (v Versions) On(minor string) (Versions, error) {
	usual := Minor(v.LocalCluster.Kubernetes)
	if minor == "" || minor == usual {
		return v, nil
	}
	other, known := v.LocalCluster.OtherKubernetes[minor]
	if !known {
		all := append(slices.Sorted(maps.Keys(v.LocalCluster.OtherKubernetes)), usual)
		return v, fmt.Errorf("a local cluster runs no Kubernetes %s: choose one of %s", minor, strings.Join(all, ", "))
	}
	v.LocalCluster.Minor, v.LocalCluster.Kubernetes = minor, other.Kubernetes
	v.Platform = maps.Clone(v.Platform)
	v.Platform["coscheduler"] = v.Platform["coscheduler"].on(minor)
	return v, nil
}

// on returns the operator with the images for a minor version of Kubernetes.
func (o Operator) on(minor string) Operator {
	if tag := o.OtherKubernetes[minor]; tag != "" {
		o.Image = strings.TrimSuffix(o.Image, o.Version) + tag
		o.ControllerImage = strings.TrimSuffix(o.ControllerImage, o.Version) + tag
	}
	return o
}

// Minor returns the minor version, such as 1.34, of a version such as v1.34.4.
func Minor(version string) string {
	return strings.TrimPrefix(semver.MajorMinor(version), "v")
}
