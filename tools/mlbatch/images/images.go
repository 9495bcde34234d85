// SPDX-License-Identifier: Apache-2.0

// Package images answers: which images does the platform pull, and how does it pull them from
// another registry? A cluster without a way to the internet needs that.
package images

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// Image is an image that the platform pulls, in its own pods or in those of teams.
type Image struct {
	// Part is the name of the part that needs it.
	Part string `json:"part"`
	// Title says what it is; empty for the part's operator.
	Title string `json:"title,omitempty"`
	// Reference is where it is pulled from.
	Reference string `json:"reference"`
}

// Of returns the images of the parts that are enabled, in their own registries, whatever
// global.imageRegistry says. The values include the chart's defaults.
// Kubernetes is the minor version of the cluster, such as 1.33; if it is empty, the images are
// those for every version. It fails if a value that chooses an image is not one.
func Of(values map[string]any, versions setup.Versions, kubernetes string) ([]Image, error) {
	var all []Image
	for _, part := range parts.All {
		if !part.Enabled(values) {
			continue
		}
		for _, image := range part.Images {
			path := append([]string{part.Name}, strings.Split(image.Value, ".")...)
			references, err := chosen(values, path, part.TagsFor(kubernetes, versions))
			if err != nil {
				return nil, err
			}
			for _, reference := range references {
				all = append(all, Image{part.Name, image.Title, reference})
			}
		}
	}
	return all, nil
}

// chosen returns the references that the values choose for an image. Without a tag there, the chart
// chooses one of these.
func chosen(values map[string]any, path, tags []string) (references []string, err error) {
	value, _, err := unstructured.NestedFieldNoCopy(values, path...)
	if err != nil {
		return nil, fmt.Errorf("cannot read the values: %w", err)
	}
	if reference, ok := value.(string); ok {
		return []string{reference}, nil
	}
	fields, _ := value.(map[string]any)
	repository, _ := fields["repository"].(string)
	if repository == "" {
		return nil, fmt.Errorf("the value %s names no image", strings.Join(path, "."))
	}
	if tag, _ := fields["tag"].(string); tag != "" {
		tags = []string{tag}
	}
	for _, tag := range tags {
		references = append(references, repository+":"+tag)
	}
	return references, nil
}

// mirrored returns where the folder of another registry has an image: FOLDER/kueue/kueue:v1 is the copy of
// registry.k8s.io/kueue/kueue:v1.
func mirrored(reference, folder string) (from, to name.Reference, err error) {
	if from, err = name.ParseReference(reference, name.StrictValidation); err != nil {
		return nil, nil, fmt.Errorf("%q is not a whole image reference: %w", reference, err)
	}
	separator := ":"
	if _, ok := from.(name.Digest); ok {
		separator = "@"
	}
	if to, err = name.ParseReference(folder + "/" + from.Context().RepositoryStr() + separator + from.Identifier()); err != nil {
		return nil, nil, fmt.Errorf("cannot copy to %s: %w", folder, err)
	}
	return from, to, nil
}

// From returns the images as they are pulled from a folder of another registry.
func From(folder string, all []Image) ([]Image, error) {
	pulled := slices.Clone(all)
	for n := range pulled {
		_, to, err := mirrored(pulled[n].Reference, folder)
		if err != nil {
			return nil, err
		}
		pulled[n].Reference = to.Name()
	}
	return pulled, nil
}

// Registry returns the folder from which the platform pulls all images with these values; empty if it
// pulls each from its own registry.
func Registry(values map[string]any) string {
	registry, _, _ := unstructured.NestedString(values, "global", "imageRegistry")
	return strings.TrimSuffix(registry, "/")
}

// Values returns the values with which the platform pulls the images from the folder, with the
// credentials of a Secret unless its name is empty.
func Values(folder, secret string) map[string]any {
	global := map[string]any{"imageRegistry": folder}
	if secret != "" {
		global["imagePullSecrets"] = []any{map[string]any{"name": secret}}
	}
	return map[string]any{"global": global}
}
