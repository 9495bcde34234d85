// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the CodeFlare API of 2023: an Application says what can be run, a DataSet
// where data is, a RunSizeConfiguration which sizes there are, and a Run is one execution. Names
// and meanings of the fields of 2023 are a contract. The package holds types and constants; what
// is made of a Run is decided in controller/runplan.
//
// A field is here only if the platform does what it says.
//
// +kubebuilder:object:generate=true
// +groupName=codeflare.dev
package v1alpha1
