// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// surroundings reads what the releases need and do not bring. What the user may not read is left out: it is no
// reason to refuse an installation.
func surroundings(ctx context.Context, api access.API, all []*delivery, f *preflight.Facts) error {
	var err error
	if f.PullSecrets, err = unusableSecrets(ctx, api, all[0]); err != nil {
		return err
	}
	if f.DefaultClass, err = defaultClass(ctx, api, all); err != nil {
		return err
	}
	f.Devices, err = devices(ctx, api)
	return err
}

// unusableSecrets returns the Secrets that pods of a release name for registries, and that are missing or of
// another type.
func unusableSecrets(ctx context.Context, api access.API, d *delivery) ([]preflight.PullSecret, error) {
	names := map[string]bool{}
	for _, o := range d.objects {
		named, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "imagePullSecrets")
		for _, n := range named {
			if secret, ok := n.(map[string]any); ok {
				names[fmt.Sprint(secret["name"])] = true
			}
		}
	}
	var found []preflight.PullSecret
	for _, name := range slices.Sorted(maps.Keys(names)) {
		secret, err := api.CoreV1().Secrets(d.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			found = append(found, preflight.PullSecret{Name: name})
		case apierrors.IsForbidden(err):
		case err != nil:
			return nil, fmt.Errorf("cannot read the Secret %s: %w", name, err)
		case secret.Type != corev1.SecretTypeDockerConfigJson && secret.Type != corev1.SecretTypeDockercfg:
			found = append(found, preflight.PullSecret{Name: name, Type: string(secret.Type)})
		}
	}
	return found, nil
}

// defaultClass finds a default PriorityClass that is not of these releases, and what of them it conflicts with.
func defaultClass(ctx context.Context, api access.API, all []*delivery) (preflight.DefaultClass, error) {
	var found preflight.DefaultClass
	classes, err := api.SchedulingV1().PriorityClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		if apierrors.IsForbidden(err) {
			err = nil
		}
		return found, err
	}
	for _, class := range classes.Items {
		if class.GlobalDefault {
			found.Name = class.Name
		}
	}
	for _, d := range all {
		for _, o := range d.objects {
			if found.Name != "" {
				conflict(&found, o.Unstructured)
			}
		}
	}
	return found, nil
}

// conflict notes what a default PriorityClass means for an object of a release.
func conflict(class *preflight.DefaultClass, o *unstructured.Unstructured) {
	switch wanted, _, _ := unstructured.NestedBool(o.Object, "globalDefault"); {
	case o.GetKind() == "PriorityClass" && wanted && o.GetName() != class.Name:
		class.Rival = o.GetName()
	case o.GetKind() == "ResourceQuota" && refuses(o, class.Name):
		class.Refused = append(class.Refused, o.GetNamespace())
	}
}

// refuses reports whether a ResourceQuota has no room for pods of this class.
func refuses(quota *unstructured.Unstructured, class string) bool {
	scopes, _, _ := unstructured.NestedSlice(quota.Object, "spec", "scopeSelector", "matchExpressions")
	return slices.ContainsFunc(scopes, func(s any) bool {
		scope, _ := s.(map[string]any)
		allowed, _, _ := unstructured.NestedStringSlice(scope, "values")
		return scope["scopeName"] == "PriorityClass" && scope["operator"] == "NotIn" && !slices.Contains(allowed, class)
	})
}

// devices returns the extended resources of all nodes.
func devices(ctx context.Context, api access.API) ([]string, error) {
	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		if apierrors.IsForbidden(err) {
			err = nil
		}
		return nil, err
	}
	found := map[string]bool{}
	for _, n := range nodes.Items {
		for name := range n.Status.Capacity {
			if strings.Contains(string(name), "/") {
				found[string(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// foreign returns the top-level values that only the other chart has.
func foreign(chart string, values map[string]any) []string {
	others := []string{"teams", "flavors", "cohorts", "requiredResources", "topologies"}
	if chart == "teams" {
		others = []string{"policies", "roles"}
		for _, p := range parts.All {
			others = append(others, p.Name)
		}
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(others, key) {
			found = append(found, key)
		}
	}
	return found
}
