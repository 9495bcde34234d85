// SPDX-License-Identifier: Apache-2.0

// Package pytorchdigits holds the files of the sample that go into its container
// image, so that a built program can make the image without the checkout.
package pytorchdigits

import "embed"

// Workspace is the content of the image's /workspace.
//
//go:embed train.py data
var Workspace embed.FS
