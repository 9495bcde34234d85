// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workflow has the steps of api workflow.
type Workflow struct {
	// Steps are Applications of the same namespace. All that do not wait for others run at once.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(step, self.exists_one(other, other.name == step.name))",message="each step has a name of its own"
	// +kubebuilder:validation:XValidation:rule="self.all(step, !has(step.dependsOn) || step.dependsOn.all(name, name != step.name && self.exists(other, other.name == name)))",message="dependsOn names other steps of the workflow"
	Steps []Step `json:"steps"`
}

// When says what the ends of the steps before it mean for a step.
type When string

// A step that may not run is skipped.
const (
	// WhenSucceeded: it runs if all succeeded.
	WhenSucceeded When = "Succeeded"
	// WhenFailed: it runs if at least one failed.
	WhenFailed When = "Failed"
	// WhenAlways: it runs in any case.
	WhenAlways When = "Always"
)

// Step is an Application that a workflow runs.
type Step struct {
	// Name tells the steps of a workflow apart.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a step is lower-case letters, digits and dashes, because pods are named after it"
	Name string `json:"name"`

	// Application is torch, shell or, with a command, ray.
	Application ApplicationReference `json:"application"`

	// Options replace those of the Application, also if they are empty.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Options *string `json:"options,omitempty"`

	// Size counts before that of the Run and that of the Application.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Size string `json:"size,omitempty"`

	// DependsOn names the steps that have to end before this one starts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=31
	// +kubebuilder:validation:items:MaxLength=30
	DependsOn []string `json:"dependsOn,omitempty"`

	// When is Succeeded if this step runs only after all it depends on succeeded, Failed if it runs
	// only after at least one failed, or Always. Otherwise it is skipped.
	// +optional
	// +kubebuilder:validation:Enum=Succeeded;Failed;Always
	// +kubebuilder:default=Succeeded
	When When `json:"when,omitempty"`

	// Retries is how often the step is started again after a failure. If absent, the AppWrapper
	// controller has a default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Retries *int32 `json:"retries,omitempty"`
}

// Phases that only a step has. All others are those of a Run.
const (
	// StepWaiting: the steps before it have not ended, or the message says what is missing.
	StepWaiting RunPhase = "Waiting"
	// StepSkipped: it does not run, because of how the steps before it ended or because the Run ended.
	StepSkipped RunPhase = "Skipped"
)

// StepStatus is a step as it was when the Run was accepted, and how far it is.
type StepStatus struct {
	Step `json:",inline"`

	// Phase is the state in one word: Waiting, Skipped, or one of those of a Run.
	Phase RunPhase `json:"phase"`

	// Message is the state in one sentence.
	// +optional
	Message string `json:"message,omitempty"`

	// AppWrapper is what does the work. Once it is recorded, no other is made.
	// +optional
	AppWrapper *AppWrapperReference `json:"appWrapper,omitempty"`

	// StartTime is when all pods of the step were ready for the first time.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the step came to its final phase.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// Ended is true of a step that will not run any more.
func (s StepStatus) Ended() bool { return s.Phase.Terminal() || s.Phase == StepSkipped }
