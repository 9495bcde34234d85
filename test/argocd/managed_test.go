// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package argocd_test

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// managed returns the metadata of all objects of the cluster that are from our two Applications.
func (s *site) managed() (found []metav1.PartialObjectMetadata) {
	s.Helper()
	for _, kind := range s.kinds() {
		list := metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := s.admin.List(s.Context(), &list); err != nil {
			s.Fatalf("%s: %v", kind, err)
		}
		for _, o := range list.Items {
			application, _, _ := strings.Cut(o.Annotations["argocd.argoproj.io/tracking-id"], ":")
			if application == "mlbatch" || application == "teams" {
				o.SetGroupVersionKind(kind)
				found = append(found, o)
			}
		}
	}
	return found
}

// kinds are all that can be listed and deleted.
func (s *site) kinds() (kinds []schema.GroupVersionKind) {
	s.Helper()
	config, err := s.cluster.RESTConfig()
	if err != nil {
		s.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		s.Fatal(err)
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
				kinds = append(kinds, schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind))
			}
		}
	}
	return kinds
}
