// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Run is one execution of an Application.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=runs,singular=run,shortName=ru,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Application",type="string",JSONPath=`.spec.application.name`
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Size",type="string",JSONPath=`.status.resolved.size`
// +kubebuilder:printcolumn:name="Workers",type="integer",JSONPath=`.status.resolved.workers`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Retries",type="integer",JSONPath=`.status.retries`,priority=1
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="a Run's name is lower-case letters, digits and dashes, at most 63, and begins with a letter, because pods are named after it"
type Run struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RunSpec `json:"spec"`

	// +optional
	Status RunStatus `json:"status,omitempty"`
}

// RunList is a list of Runs.
//
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Run `json:"items"`
}

// Priority orders the work of a team.
type Priority string

// Priorities.
const (
	PriorityLow    Priority = "low"
	PriorityNormal Priority = "normal"
	PriorityHigh   Priority = "high"
)

// RunSpec says what is run, and with how much of everything.
//
// +kubebuilder:validation:XValidation:rule="self.application == oldSelf.application && has(self.options) == has(oldSelf.options) && (!has(self.options) || self.options == oldSelf.options) && has(self.env) == has(oldSelf.env) && (!has(self.env) || self.env == oldSelf.env) && has(self.envFrom) == has(oldSelf.envFrom) && (!has(self.envFrom) || self.envFrom == oldSelf.envFrom) && has(self.size) == has(oldSelf.size) && (!has(self.size) || self.size == oldSelf.size) && has(self.workers) == has(oldSelf.workers) && (!has(self.workers) || self.workers == oldSelf.workers) && has(self.resources) == has(oldSelf.resources) && (!has(self.resources) || self.resources == oldSelf.resources) && has(self.supportsGpu) == has(oldSelf.supportsGpu) && (!has(self.supportsGpu) || self.supportsGpu == oldSelf.supportsGpu) && has(self.priority) == has(oldSelf.priority) && (!has(self.priority) || self.priority == oldSelf.priority) && has(self.input) == has(oldSelf.input) && (!has(self.input) || self.input == oldSelf.input) && has(self.queueName) == has(oldSelf.queueName) && (!has(self.queueName) || self.queueName == oldSelf.queueName) && has(self.activeDeadlineSeconds) == has(oldSelf.activeDeadlineSeconds) && (!has(self.activeDeadlineSeconds) || self.activeDeadlineSeconds == oldSelf.activeDeadlineSeconds) && has(self.inbox) == has(oldSelf.inbox) && (!has(self.inbox) || self.inbox == oldSelf.inbox) && has(self.queue) == has(oldSelf.queue) && (!has(self.queue) || self.queue == oldSelf.queue)",message="a Run cannot be changed but for cancel and ttlSecondsAfterFinished: make another one"
// +kubebuilder:validation:XValidation:rule="!oldSelf.?cancel.orValue(false) || self.?cancel.orValue(false)",message="a Run that was cancelled stays so: make another one"
type RunSpec struct {
	// Application is what is run.
	Application ApplicationReference `json:"application"`

	// Options replace those of the Application, also if they are empty.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Options *string `json:"options,omitempty"`

	Variables `json:",inline"`

	// Size names a size of the RunSizeConfigurations; if absent, the Application's, or else sm.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Size string `json:"size,omitempty"`

	// Workers replaces the size's number of workers.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Workers *int32 `json:"workers,omitempty"`

	// Resources of each worker replace the size's, one by one.
	// +optional
	Resources Resources `json:"resources,omitempty"`

	// SupportsGPU says that this Run wants the GPUs of its size.
	// +optional
	SupportsGPU bool `json:"supportsGpu,omitempty"`

	// Priority is low, normal or high: PriorityClass low-priority, default-priority or
	// high-priority.
	// +optional
	// +kubebuilder:validation:Enum=low;normal;high
	// +kubebuilder:default=normal
	Priority Priority `json:"priority,omitempty"`

	// Input says which size of each input is used.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Input string `json:"input,omitempty"`

	// Inbox is the folder of the tasks in the DataSet of a work queue, inbox if absent. A dot is all
	// of the DataSet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '.' || !self.split('/').exists(part, part in ['', '.', '..'])",message="inbox is a folder of the DataSet: without .. and without / at the beginning or the end"
	// +kubebuilder:validation:XValidation:rule="!(self.split('/')[0] in ['outbox', '.mlbatch-queue'])",message="inbox is another folder than those of the results, outbox and .mlbatch-queue"
	Inbox string `json:"inbox,omitempty"`

	// Queue is required for api workqueue.
	// +optional
	Queue *RunQueue `json:"queue,omitempty"`

	// QueueName is the LocalQueue. If absent, the AppWrapper controller has a default.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="queueName is the name of a LocalQueue: lower-case letters, digits and dashes"
	QueueName string `json:"queueName,omitempty"`

	// ActiveDeadlineSeconds after its startTime, preemptions included, the Run fails.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// TTLSecondsAfterFinished after its completionTime, the Run is deleted. If absent, it stays.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// Cancel ends the Run and keeps its record.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// ApplicationReference names an Application of the Run's namespace.
type ApplicationReference struct {
	// Name is the Application's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace is the Run's, or another one in which the author of the Run may get Applications. That
	// of a step may only repeat the workflow's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}
