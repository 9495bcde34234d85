// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DataSet names data.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=datasets,singular=dataset,shortName=cfds,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`
type DataSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DataSetSpec `json:"spec"`
}

// DataSetList is a list of DataSets.
//
// +kubebuilder:object:root=true
type DataSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DataSet `json:"items"`
}

// DataSetSpec says where data is.
//
// +kubebuilder:validation:XValidation:rule="has(self.pvc) != has(self.nfs)",message="a DataSet has exactly one of pvc and nfs"
type DataSetSpec struct {
	// PVC is a PersistentVolumeClaim.
	// +optional
	PVC *PVCSource `json:"pvc,omitempty"`

	// NFS is a folder of an NFS server.
	// +optional
	NFS *NFSSource `json:"nfs,omitempty"`

	// ReadOnly data is mounted so that programs cannot change it.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// PVCSource is a PersistentVolumeClaim of the DataSet's namespace.
type PVCSource struct {
	// ClaimName is the claim's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// SubPath is a folder of the volume, which is mounted instead of all.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(part, part == '..')",message="subPath is a path below the claim's root: without .. and without / at the beginning"
	SubPath string `json:"subPath,omitempty"`
}

// NFSSource is a folder of an NFS server.
type NFSSource struct {
	// Server is the server's name or address.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Server string `json:"server"`

	// Path is the folder that the server exports.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="the path of nfs begins with /"
	Path string `json:"path"`
}
