// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// sources provide the content of a pod's environment and volumes.
type sources struct {
	// read returns the data of a ConfigMap or Secret.
	read func(kind, name string) (map[string][]byte, error)
	// token creates a token of the pod's service account.
	token func(*corev1.ServiceAccountTokenProjection) (string, error)
}

// content is read, but returns nothing for a missing object that is optional.
func (s sources) content(kind, name string, optional *bool) (map[string][]byte, error) {
	data, err := s.read(kind, name)
	if apierrors.IsNotFound(err) && ptr.Deref(optional, false) {
		return nil, nil
	}
	return data, err
}

func (s sources) one(kind, name, key string, optional *bool) (string, error) {
	data, err := s.content(kind, name, optional)
	if err != nil {
		return "", err
	}
	value, found := data[key]
	if !found && !ptr.Deref(optional, false) {
		return "", fmt.Errorf("%s %s has no key %s", kind, name, key)
	}
	return string(value), nil
}

// apiSources reads a pod's sources from the API server.
func apiSources(ctx context.Context, api kubernetes.Interface, pod *corev1.Pod) sources {
	return sources{
		read: func(kind, name string) (map[string][]byte, error) {
			if kind == "Secret" {
				secret, err := api.CoreV1().Secrets(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
				return secret.Data, err
			}
			config, err := api.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
			data := map[string][]byte{}
			maps.Copy(data, config.BinaryData)
			for key, value := range config.Data {
				data[key] = []byte(value)
			}
			return data, err
		},
		token: func(p *corev1.ServiceAccountTokenProjection) (string, error) {
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: p.ExpirationSeconds,
				BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
			}}
			if p.Audience != "" {
				request.Spec.Audiences = []string{p.Audience}
			}
			made, err := api.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
			if err != nil {
				return "", err
			}
			return made.Status.Token, nil
		},
	}
}

// watchSources calls changed when a source of a pod's volumes changes. A node may only watch
// the objects that its pods use, one by one.
func watchSources(ctx context.Context, api kubernetes.Interface, pod *corev1.Pod, changed func()) {
	watch := func(resource, name string, object runtime.Object) {
		of := cache.NewListWatchFromClient(api.CoreV1().RESTClient(), resource, pod.Namespace, fields.OneTermEqualSelector("metadata.name", name))
		_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: of, ObjectType: object,
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
			},
		})
		go controller.RunWithContext(ctx)
	}
	for _, v := range pod.Spec.Volumes {
		for _, p := range projections(v) {
			switch {
			case p.ConfigMap != nil:
				watch("configmaps", p.ConfigMap.Name, &corev1.ConfigMap{})
			case p.Secret != nil:
				watch("secrets", p.Secret.Name, &corev1.Secret{})
			}
		}
	}
}
