// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunSizeConfiguration has the administrator's sizes of Runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=runsizeconfigurations,singular=runsizeconfiguration,shortName=rsc,scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Priority",type="integer",JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`
type RunSizeConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RunSizeConfigurationSpec `json:"spec"`
}

// RunSizeConfigurationList is a list of RunSizeConfigurations.
//
// +kubebuilder:object:root=true
type RunSizeConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RunSizeConfiguration `json:"items"`
}

// RunSizeConfigurationSpec has sizes by name.
type RunSizeConfigurationSpec struct {
	// Priority decides between configurations that have a size of the same name: the lowest
	// counts, and of equal ones the first by name.
	// +optional
	// +kubebuilder:default=1
	Priority *int32 `json:"priority,omitempty"`

	// Config has the sizes.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	Config map[string]Size `json:"config"`
}

// Size is how many workers a Run has, and what each of them gets.
type Size struct {
	// Workers is the number of workers.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Workers int32 `json:"workers"`

	// CPU of each worker.
	CPU Amount `json:"cpu"`

	// Memory of each worker.
	Memory Amount `json:"memory"`

	// GPU is the number of GPUs of each worker, for Runs and Applications with supportsGpu.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1024
	GPU int32 `json:"gpu"`

	// Resources are further resources of each worker.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['cpu', 'memory']))",message="cpu and memory of a size are fields of their own"
	Resources Resources `json:"resources,omitempty"`

	// NodeSelector is for all pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// Resources are amounts by the name of a resource.
//
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^(cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMGT]i|[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)$'))",message="a resource is cpu, memory, ephemeral-storage, hugepages-SIZE, or has a domain, such as nvidia.com/gpu"
type Resources map[corev1.ResourceName]Amount

// Amount is a quantity within bounds, such as 8, 500m, 1.5Gi or 1e3. Without them nobody could
// decode 1e1.5, and to compute with 1e2000000000 would not end.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000000000000000 : self.matches('^[+]?([0-9]{1,15}([.][0-9]{0,9})?|[.][0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$')",message="an amount is not negative and has at most 15 digits before the point, 9 after it and 2 in its exponent, such as 8, 500m, 1.5Gi or 1e3"
type Amount struct {
	resource.Quantity `json:",inline"`
}

// MustParseAmount is for amounts in code. It panics if there is no such quantity.
func MustParseAmount(amount string) Amount {
	return Amount{resource.MustParse(amount)}
}
