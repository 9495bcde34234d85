// SPDX-License-Identifier: Apache-2.0

// Package setup answers: where does MLBatch come from, and which versions of
// its parts is it built for? The answer is versions.yaml, beside this file,
// embedded so that every program of this repository carries the same one.
package setup

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed versions.yaml
var versionsYAML []byte

// Versions is the content of versions.yaml; the comments there say what each
// entry is for.
type Versions struct {
	Module          string       `json:"module"`
	Version         string       `json:"version"`
	ImageRepository string       `json:"imageRepository"`
	ChartRepository string       `json:"chartRepository"`
	Supported       Supported    `json:"supported"`
	Helm            Helm         `json:"helm"`
	SchedulerName   string       `json:"schedulerName"`
	Platform        Platform     `json:"platform"`
	LocalCluster    LocalCluster `json:"localCluster"`
}

// Supported states version ranges as Helm's kubeVersion understands them.
type Supported struct {
	Kubernetes string `json:"kubernetes"`
	Kueue      string `json:"kueue"`
}

// Helm are the clients that the charts are tested with.
type Helm struct {
	Three string `json:"three"`
	Four  string `json:"four"`
}

// Platform has the upstream operators that the umbrella chart installs beside our own, by
// the names of their parts.
type Platform map[string]Operator

// Operator is one upstream operator: the Go module that its CRDs, rules and
// binary come from, and the image that users pull.
type Operator struct {
	Version string `json:"version"`
	Module  string `json:"module"`
	Image   string `json:"image"`
	// ControllerImage is set for the coscheduler only, whose PodGroup
	// controller is an image of its own.
	ControllerImage string `json:"controllerImage,omitempty"`
	// InitImage is set for the training operator only: workers of PyTorchJobs
	// wait for their master in it.
	InitImage string `json:"initImage,omitempty"`
}

// LocalCluster lists the programs that a local cluster is made of.
type LocalCluster struct {
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	KWOK       string `json:"kwok"`
	CoreDNS    string `json:"coredns"`
	Containerd string `json:"containerd"`
	CNI        string `json:"cni"`
}

// ReleasedTo is the same, but for another registry folder, such as
// registry.example.com/mlbatch. Charts go into its folder charts.
func (v Versions) ReleasedTo(folder string) Versions {
	v.ImageRepository, v.ChartRepository = folder, "oci://"+folder+"/charts"
	return v
}

// ControllerImage is the full reference of our controller's image.
func (v Versions) ControllerImage() string {
	return v.ImageRepository + "/controller:" + v.Version
}

// Load returns the embedded versions. It fails only if versions.yaml has an
// entry that the types above do not know.
func Load() (Versions, error) {
	var v Versions
	if err := yaml.UnmarshalStrict(versionsYAML, &v); err != nil {
		return Versions{}, fmt.Errorf("cannot read setup/versions.yaml: %w", err)
	}
	return v, nil
}
