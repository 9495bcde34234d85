// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object has the fields of rendered objects that the tests read.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data"`
	StringData        map[string]string `json:"stringData"`
	Spec              struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

func parse(t *testing.T, document string) object {
	t.Helper()
	of := headOf(t, document)
	o := object{TypeMeta: of.TypeMeta, ObjectMeta: of.ObjectMeta}
	if o.Kind == "Deployment" || o.Kind == "ConfigMap" || o.Kind == "Secret" {
		readWhole(t, document, &o)
	}
	return o
}

// objects parses a whole manifest.
func objects(t *testing.T, manifest string) []object {
	t.Helper()
	var all []object
	for _, document := range strings.Split(manifest, "\n---\n") {
		all = append(all, parse(t, document))
	}
	return all
}

func find(t *testing.T, all []object, id string) object {
	t.Helper()
	for _, o := range all {
		if o.id() == id {
			return o
		}
	}
	t.Fatalf("%s is not rendered", id)
	return object{}
}

func (o object) id() string { return o.Kind + "/" + o.Name }

func (o object) containers() []corev1.Container {
	pod := o.Spec.Template.Spec
	return append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...)
}

// images are the images of its containers, and of the init container that it adds to
// other pods.
func (o object) images() []string {
	var all []string
	// The controller of Runs gives it to the pods that it plans.
	if _, agent, is := strings.Cut(o.Data["config.yaml"], "agentImage: "); is {
		image, _, _ := strings.Cut(agent, "\n")
		all = append(all, image)
	}
	for _, container := range o.containers() {
		all = append(all, container.Image)
		for _, arg := range container.Args {
			if image, is := strings.CutPrefix(arg, "--pytorch-init-container-image="); is {
				all = append(all, image)
			}
		}
	}
	return all
}

// line is the object's entry in the list of a golden file.
func (o object) line() string {
	var line strings.Builder
	fmt.Fprintf(&line, "# %s %s %s\n", o.APIVersion, o.Kind, o.Name)
	for _, container := range o.containers() {
		fmt.Fprintf(&line, "#     %s\n", container.Image)
		for _, arg := range container.Args {
			fmt.Fprintf(&line, "#     %s\n", arg)
		}
	}
	return line.String()
}
