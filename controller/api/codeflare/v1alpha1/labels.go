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
	// StepLabel holds the name of the step, if the Run is a workflow.
	StepLabel = "codeflare.dev/step"
	// RoleLabel is on pods only, and says what a pod does in its Run.
	RoleLabel = "codeflare.dev/role"
)

// Annotations of a Run that only the webhook of Runs writes, when the Run is created.
const (
	// AuthorAnnotation holds the name of the user who made the Run.
	AuthorAnnotation = "codeflare.dev/author"
	// AuthorUIDAnnotation holds the UID of that user.
	AuthorUIDAnnotation = "codeflare.dev/author-uid"
	// AuthorMayAnnotation lists what that user may create or wrap in the Run's namespace, separated
	// by commas: pytorchjobs.kubeflow.org,jobs.batch,configmaps.
	AuthorMayAnnotation = "codeflare.dev/author-may"
	// AuthorGroupsAnnotation holds what else the API server knew of that user, as JSON: groups and extra. With it
	// the rights are reviewed again when an AppWrapper is made.
	AuthorGroupsAnnotation = "codeflare.dev/author-groups"
)

// ReservedVariables is the prefix of the variables that the platform gives to programs.
const ReservedVariables = "CODEFLARE_"
