// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels of the AppWrapper of a Run and of its pods. Values are cut to 63 characters.
const (
	// RunLabel holds the name of the Run.
	RunLabel = "codeflare.dev/run"
	// ApplicationLabel holds the name of the Application.
	ApplicationLabel = "codeflare.dev/application"
	// ArchetypeLabel holds the api of the Application.
	ArchetypeLabel = "codeflare.dev/archetype"
	// RoleLabel is on pods only, and says what a pod does in its Run.
	RoleLabel = "codeflare.dev/role"
)

// ReservedVariables is the prefix of the variables that the platform gives to programs.
const ReservedVariables = "CODEFLARE_"
