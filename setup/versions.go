// SPDX-License-Identifier: Apache-2.0

// Package setup answers: where does MLBatch come from, and which versions of its parts
// does it use? The answer is versions.yaml, which is embedded in every program of this
// repository.
package setup

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed versions.yaml
var versionsYAML []byte

// Versions is the content of versions.yaml. The comments there describe each entry.
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

// Supported has version ranges in the format of Helm's kubeVersion.
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

// Operator is one upstream operator: the Go module of its CRDs, RBAC rules and binary,
// and the image that users pull.
type Operator struct {
	Version string `json:"version"`
	Module  string `json:"module"`
	Image   string `json:"image"`
	// ControllerImage is set only for the coscheduler, whose PodGroup controller has a
	// separate image.
	ControllerImage string `json:"controllerImage,omitempty"`
	// OtherKubernetes has the tags of Image and ControllerImage for clusters of another minor version
	// than the default's, such as 1.30. It is set only for the coscheduler.
	OtherKubernetes map[string]string `json:"otherKubernetes,omitempty"`
	// InitImage is of init containers in users' pods. It is set for the training operator, whose
	// workers of PyTorchJobs wait in one for their master, and for our own.
	InitImage string `json:"initImage,omitempty"`
}

// LocalCluster lists the programs of a local cluster.
type LocalCluster struct {
	Kubernetes string `json:"kubernetes"`
	// OtherKubernetes are versions that a local cluster can run instead, by minor version, such as 1.30.
	OtherKubernetes map[string]OtherKubernetes `json:"otherKubernetes,omitempty"`

	// Minor is the key in OtherKubernetes of what On chose, or "".
	Minor      string `json:"-"`
	Etcd       string `json:"etcd"`
	KWOK       string `json:"kwok"`
	CoreDNS    string `json:"coredns"`
	Containerd string `json:"containerd"`
	CNI        string `json:"cni"`
}

// ReleasedTo returns the versions with another registry folder, such as
// registry.example.com/mlbatch. The charts are in its subfolder charts.
func (v Versions) ReleasedTo(folder string) Versions {
	v.ImageRepository, v.ChartRepository = folder, "oci://"+folder+"/charts"
	return v
}

// ControllerImage is the full reference of the AppWrapper controller's image.
func (v Versions) ControllerImage() string {
	return v.ImageRepository + "/controller:" + v.Version
}

// AgentImage is the full reference of the image of our program in the pods of Runs.
func (v Versions) AgentImage() string {
	return v.ImageRepository + "/agent:" + v.Version
}

// Load returns the embedded versions. It fails only if versions.yaml has an unknown entry.
func Load() (Versions, error) {
	var v Versions
	if err := yaml.UnmarshalStrict(versionsYAML, &v); err != nil {
		return Versions{}, fmt.Errorf("cannot read setup/versions.yaml: %w", err)
	}
	return v, nil
}
