// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AppWrapperKind is the kind of an AppWrapper, as owner references spell it.
const AppWrapperKind = "AppWrapper"

var (
	// GroupVersion identifies this API.
	GroupVersion = schema.GroupVersion{Group: "workload.codeflare.dev", Version: "v1beta2"}

	// SchemeBuilder collects the functions that teach a scheme this API.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme teaches a scheme this API.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &AppWrapper{}, &AppWrapperList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
