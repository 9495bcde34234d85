// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// WorkQueue has settings of api workqueue.
type WorkQueue struct {
	// MaxAttempts is how often a task is tried before it is given up.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	MaxAttempts int32 `json:"maxAttempts,omitempty"`

	// TaskTimeoutSeconds is how long a try may take. 0 is as long as it likes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TaskTimeoutSeconds int32 `json:"taskTimeoutSeconds,omitempty"`

	// LeaseSeconds after a worker was last heard of, its task is given to another one.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=600
	LeaseSeconds int32 `json:"leaseSeconds,omitempty"`
}

// RunQueue says where the tasks of a Run are, and when it is done.
type RunQueue struct {
	// DataSet has the tasks and gets the results.
	DataSet DataSetReference `json:"dataset"`

	// Open queues wait for tasks until they are drained: mlbatch queue drain.
	// +optional
	Open bool `json:"open,omitempty"`

	// MaxFailed is how many tasks may be given up in a Run that succeeds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaxFailed int32 `json:"maxFailed,omitempty"`
}

// DataSetReference names a DataSet of the Run's namespace.
type DataSetReference struct {
	// Name is the DataSet's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// QueueStatus has the counts of a work queue at its end.
type QueueStatus struct {
	// Succeeded is how many tasks have a result.
	Succeeded int32 `json:"succeeded"`

	// Failed is how many tasks were given up.
	Failed int32 `json:"failed"`
}
