// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of this API.
const (
	ApplicationKind          = "Application"
	DataSetKind              = "DataSet"
	RunKind                  = "Run"
	RunSizeConfigurationKind = "RunSizeConfiguration"
)

var (
	// GroupVersion identifies this API.
	GroupVersion = schema.GroupVersion{Group: "codeflare.dev", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that teach a scheme this API.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme teaches a scheme this API.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Application{}, &ApplicationList{}, &DataSet{}, &DataSetList{},
		&Run{}, &RunList{}, &RunSizeConfiguration{}, &RunSizeConfigurationList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
