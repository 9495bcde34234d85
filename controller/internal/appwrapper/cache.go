// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
)

// CacheOptions limit the caches to what belongs to AppWrappers, and of that to the fields
// that are read. Other pods and Jobs of the cluster are not cached.
func CacheOptions(c config.AppWrapper) (cache.Options, error) {
	rules := c.NodeRules()
	labelled, err := labels.NewRequirement(v1beta2.AppWrapperLabel, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	in := newInterner()
	return cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(*labelled),
		DefaultTransform:     in.slimComponent,
		ByObject: map[client.Object]cache.ByObject{
			&v1beta2.AppWrapper{}: {Label: labels.Everything(), Transform: in.slimAppWrapper},
			&corev1.Pod{}:         {Transform: boundPods(in, rules)},
			&corev1.Node{}:        {Label: labels.Everything(), Transform: slimNode(rules)},
		},
	}, nil
}
