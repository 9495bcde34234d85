// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// Change is what is different in a copy.
type Change struct {
	// Settings are assignments to those of which 'mlbatch submit' has made the job.
	Settings []string
	// Version is that of the generator, and Check is an error if the job can never run: for Settings.
	Version string
	Check   func(context.Context, submit.Job) error

	annotations map[string]string
	removed     []string
}

// remake makes a copy anew of its settings, if some are to change.
func (c Change) remake(ctx context.Context, old, aw *v1beta2.AppWrapper) error {
	if len(c.Settings) == 0 {
		return nil
	}
	job, err := submit.Again(c.Version, old, aw.Name, c.Settings)
	if err != nil {
		return err
	}
	if c.Check != nil {
		if err := c.Check(ctx, job); err != nil {
			return err
		}
	}
	made := job.AppWrapper()
	aw.Spec = *made.Spec.DeepCopy()
	maps.Copy(aw.Labels, made.Labels)
	maps.Copy(aw.Annotations, made.Annotations)
	return nil
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
