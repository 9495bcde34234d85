// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"helm.sh/helm/v3/pkg/strvals"
	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// RecipeAnnotation has what a job was made of, so that it can be made again with other settings.
const RecipeAnnotation = "mlbatch.dev/recipe"

// mostRecipe is a quarter of what all annotations of an object may have. A larger recipe is not kept.
const mostRecipe = 64 << 10

// recipe is what a user has asked for. The files themselves are in the job's ConfigMap.
type recipe struct {
	Settings  map[string]any `json:"settings"`
	Script    string         `json:"script,omitempty"`
	Files     []string       `json:"files,omitempty"`
	Arguments []string       `json:"arguments,omitempty"`
	Array     *Array         `json:"array,omitempty"`
}

// recipe is how the job was made of the program, for retry --set.
func (p Program) recipe(settings map[string]any, script string, carried []file) *recipe {
	r := &recipe{Settings: maps.Clone(settings), Script: script, Arguments: p.Arguments, Array: p.Array}
	for _, f := range carried {
		r.Files = append(r.Files, f.path)
	}
	return r
}

// keep writes the recipe to the AppWrapper.
func (r *recipe) keep(aw *v1beta2.AppWrapper) error {
	if r == nil {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil || len(text) > mostRecipe {
		return err
	}
	if aw.Annotations == nil {
		aw.Annotations = map[string]string{}
	}
	aw.Annotations[RecipeAnnotation] = string(text)
	return nil
}

// Again renders the job of which an AppWrapper was made, under another name and with other settings.
func Again(version string, old *v1beta2.AppWrapper, name string, assignments []string) (Job, error) {
	var r recipe
	if err := json.Unmarshal([]byte(old.Annotations[RecipeAnnotation]), &r); err != nil {
		return Job{}, fmt.Errorf("AppWrapper %s does not say of which settings it was made, as those of 'mlbatch submit' do: "+
			"change its manifest, and submit that under another name", old.Name)
	}
	carried, err := r.carried(old)
	if err != nil {
		return Job{}, err
	}
	was := r.Settings["jobName"]
	for _, assignment := range assignments {
		if err := strvals.ParseInto(assignment, r.Settings); err != nil {
			return Job{}, fmt.Errorf("cannot read --set %s: %w", assignment, err)
		}
	}
	if r.Settings["jobName"] != was {
		return Job{}, fmt.Errorf("the copy is called %s: leave jobName out", name)
	}
	r.Settings["jobName"] = name
	job, err := r.job(version, carried)
	if err == nil {
		err = job.In(old.Namespace, "")
	}
	if err == nil {
		err = job.parts.recipe.keep(job.appWrapper)
	}
	return job, err
}

func (r *recipe) job(version string, carried []file) (Job, error) {
	if r.Script == "" {
		return New(version, r.Settings)
	}
	return Program{Script: r.Script, Arguments: r.Arguments, Array: r.Array}.job(version, r.Settings, r.Script, carried)
}

// carried are the files that a job has carried.
func (r *recipe) carried(old *v1beta2.AppWrapper) (all []file, err error) {
	if r.Script == "" {
		return nil, nil
	}
	for _, component := range old.Spec.Components {
		var stored corev1.ConfigMap
		err := json.Unmarshal(component.Template.Raw, &stored)
		if err != nil || stored.Kind != "ConfigMap" || !slices.Contains([]string{mapOf(old.Name), mapOf(fmt.Sprint(r.Settings["jobName"]))}, stored.Name) {
			continue
		}
		for i, name := range r.Files {
			f := file{path: name}
			text, is := stored.Data[keyOf(i, f)]
			binary, isBinary := stored.BinaryData[keyOf(i, f)]
			if !is && !isBinary {
				return nil, fmt.Errorf("AppWrapper %s does not carry %s any more: submit the script again", old.Name, name)
			}
			f.content = append([]byte(text), binary...)
			all = append(all, f)
		}
		return all, nil
	}
	return nil, fmt.Errorf("AppWrapper %s does not carry its script any more: submit the script again", old.Name)
}
