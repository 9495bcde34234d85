// SPDX-License-Identifier: Apache-2.0

package fakeapiserver

import (
	"io"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// reviews decodes what clients send, which may be protobuf.
var reviews = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	if err := authorizationv1.AddToScheme(scheme); err != nil {
		panic(err) // its types are fixed
	}
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// rules answers a review of what may be listed and watched in a namespace.
func (s *Server) rules(q request) *authorizationv1.SelfSubjectRulesReview {
	review := &authorizationv1.SelfSubjectRulesReview{}
	text, err := io.ReadAll(q.Body)
	if err == nil {
		_, _, err = reviews.Decode(text, nil, review)
	}
	review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"))
	review.Status.Incomplete = err != nil
	for resource := range s.kinds {
		for _, verb := range []string{"get", "list", "watch"} {
			if s.Refuses == nil || !s.Refuses(verb, resource, review.Spec.Namespace) {
				review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: []string{verb}, Resources: []string{resource}})
			}
		}
	}
	return review
}

// allows answers a review. What cannot be read is not allowed.
func (s *Server) allows(q request) bool {
	if s.Allows == nil {
		return true
	}
	text, err := io.ReadAll(q.Body)
	if err != nil {
		return false
	}
	object, _, err := reviews.Decode(text, nil, nil)
	if err != nil {
		return false
	}
	var of *authorizationv1.ResourceAttributes
	switch review := object.(type) {
	case *authorizationv1.SubjectAccessReview:
		of = review.Spec.ResourceAttributes
	case *authorizationv1.SelfSubjectAccessReview:
		of = review.Spec.ResourceAttributes
	}
	return of != nil && s.Allows(of.Verb, of.Resource)
}
