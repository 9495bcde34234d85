// SPDX-License-Identifier: Apache-2.0

// Package v1beta2 is the AppWrapper API: the words that users, Kueue and this
// controller share. It is wire-compatible with every AppWrapper controller of
// the group workload.codeflare.dev, so names, spellings and shapes in it are a
// contract and change only by addition. It holds types and constants; what is
// done with them is decided elsewhere.
//
// +kubebuilder:object:generate=true
// +groupName=workload.codeflare.dev
package v1beta2
