// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Change is what is different in a copy.
type Change struct {
	annotations map[string]string
	removed     []string
}

// ParseChange reads annotations: NAME=VALUE sets one, and NAME- removes it. A name without / is one of MLBatch's own.
func ParseChange(annotations []string) (Change, error) {
	change := Change{annotations: map[string]string{}}
	for _, text := range annotations {
		name, value, set := strings.Cut(text, "=")
		bare, remove := strings.CutSuffix(name, "-")
		if set == remove {
			return Change{}, fmt.Errorf("cannot read --annotate %s: write NAME=VALUE, such as retryLimit=0, or NAME- to remove it", text)
		}
		if !strings.Contains(bare, "/") {
			bare = v1beta2.AnnotationPrefix + bare
		}
		if wrong := validation.IsQualifiedName(strings.ToLower(bare)); len(wrong) > 0 {
			return Change{}, fmt.Errorf("cannot read --annotate %s: %s is no name of an annotation", text, bare)
		}
		if remove {
			change.removed = append(change.removed, bare)
		} else {
			change.annotations[bare] = value
		}
	}
	return change, nil
}

// Annotate changes the annotations of a copy.
func (c Change) Annotate(of client.Object) {
	all := maps.Clone(of.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, c.annotations)
	for _, name := range c.removed {
		delete(all, name)
	}
	of.SetAnnotations(all)
}
