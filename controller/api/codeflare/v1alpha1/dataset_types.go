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
// +kubebuilder:validation:XValidation:rule="[has(self.pvc), has(self.nfs), has(self.s3)].exists_one(is, is)",message="a DataSet has exactly one of pvc, nfs and s3"
type DataSetSpec struct {
	// PVC is a PersistentVolumeClaim.
	// +optional
	PVC *PVCSource `json:"pvc,omitempty"`

	// NFS is a folder of an NFS server.
	// +optional
	NFS *NFSSource `json:"nfs,omitempty"`

	// S3 is a bucket of an S3 server. Programs get a copy, which they cannot change, or variables.
	// +optional
	S3 *S3Source `json:"s3,omitempty"`

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

// S3Source is a bucket of an S3 server.
type S3Source struct {
	// Endpoint is the server's URL, http://HOST:PORT or https://HOST.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@[:space:]]+/?$')",message="the endpoint of s3 is http://HOST or https://HOST, with a port if it needs one"
	Endpoint string `json:"endpoint"`

	// Bucket is the bucket's name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][-.a-z0-9]+[a-z0-9]$')",message="a bucket's name has 3 to 63 lower-case letters, digits, dashes and dots"
	Bucket string `json:"bucket"`

	// Prefix is a folder of the bucket, which is taken instead of all: train has the object
	// train/1, and not training/1.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/')",message="the prefix of s3 is a folder of the bucket: without / at the beginning"
	Prefix string `json:"prefix,omitempty"`

	// Region is the bucket's region. Without it, the server tells.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// SecretName is a Secret of the Run's namespace with the keys accessKeyID and
	// secretAccessKey. Without it, the bucket is read without keys. Its key ca.crt, which may be
	// absent, is the certificate of an authority that only your servers know.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// CopyLimit is how much may be copied into each pod. Each object counts as whole blocks of 4Ki.
	// +optional
	// +kubebuilder:default="10Gi"
	CopyLimit *Amount `json:"copyLimit,omitempty"`
}
