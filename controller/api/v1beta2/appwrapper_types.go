// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AppWrapper bundles Kubernetes resources into one unit that is queued, given
// quota, deployed, watched, retried and removed as a whole.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=appwrappers,singular=appwrapper,shortName=aw,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Quota Reserved",type="string",JSONPath=`.status.conditions[?(@.type=="QuotaReserved")].status`
// +kubebuilder:printcolumn:name="Resources Deployed",type="string",JSONPath=`.status.conditions[?(@.type=="ResourcesDeployed")].status`
// +kubebuilder:printcolumn:name="Unhealthy",type="string",JSONPath=`.status.conditions[?(@.type=="Unhealthy")].status`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="QuotaReserved")].reason`
type AppWrapper struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AppWrapperSpec   `json:"spec,omitempty"`
	Status AppWrapperStatus `json:"status,omitempty,omitzero"`
}

// AppWrapperList is a list of AppWrappers.
//
// +kubebuilder:object:root=true
type AppWrapperList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AppWrapper `json:"items"`
}

// AppWrapperSpec says what is wrapped and whether it may be deployed.
type AppWrapperSpec struct {
	// Components are the wrapped resources, in the order in which they are created.
	// +listType=atomic
	Components []AppWrapperComponent `json:"components"`

	// Suspend true means: do not deploy, and remove what is deployed. Kueue owns
	// this field; it becomes false when quota has been reserved.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ManagedBy names the controller that looks after this AppWrapper. Empty, or
	// workload.codeflare.dev/appwrapper-controller, is this one; any other value
	// makes this controller ignore the object altogether, its deletion included.
	// The field is immutable.
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`
}

// AppWrapperComponent is one wrapped resource.
type AppWrapperComponent struct {
	// Annotations are kept with the component and are not read by the controller.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// DeclaredPodSets says where the pod templates of the resource are and how many
	// pods each of them makes. It may be left out for kinds that the controller knows.
	// +optional
	// +listType=atomic
	DeclaredPodSets []AppWrapperPodSet `json:"podSets,omitempty"`

	// PodSetInfos holds what Kueue wants added to each pod template, in the order of
	// the pod sets. Kueue writes it on admission and clears it on suspension.
	// +optional
	// +listType=atomic
	PodSetInfos []AppWrapperPodSetInfo `json:"podSetInfos,omitempty"`

	// Template is the wrapped resource itself. It is immutable.
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`
}

// AppWrapperPodSet is a number of pods that are made from one pod template.
type AppWrapperPodSet struct {
	// Replicas is the number of pods; 1 when it is left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Path leads to the pod template, for example template.spec.template.
	Path string `json:"path"`

	// Annotations describe the pod set to Kueue's topology-aware scheduling.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Count is the number of pods in the pod set.
func (p AppWrapperPodSet) Count() int32 {
	if p.Replicas == nil {
		return 1
	}
	return *p.Replicas
}

// AppWrapperPodSetInfo is what admission adds to a pod template.
type AppWrapperPodSetInfo struct {
	// Annotations to be added.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels to be added.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// NodeSelector to be added.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations to be added.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// SchedulingGates to be added.
	// +optional
	// +listType=atomic
	SchedulingGates []corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`
}

// ManagedByThisController tells whether the AppWrapper is ours to look after.
func (a *AppWrapper) ManagedByThisController() bool {
	return a.Spec.ManagedBy == nil || *a.Spec.ManagedBy == AppWrapperControllerName
}
