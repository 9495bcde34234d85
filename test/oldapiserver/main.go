// SPDX-License-Identifier: Apache-2.0

// Command oldapiserver answers what the API server of the oldest supported Kubernetes says of CRDs
// that are created. It reads them as YAML documents, prints a line for each reason to refuse one,
// and then how many CRDs it has judged. Newer libraries accept more: their estimates of what the
// rules cost are lower, and their CEL has other names.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	judged, err := judge(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d CRDs\n", judged)
}

// judge returns how many CRDs it has read.
func judge(crds io.Reader, out io.Writer) (int, error) {
	documents := yaml.NewYAMLOrJSONDecoder(crds, 4096)
	for judged := 0; ; judged++ {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := documents.Decode(&crd); errors.Is(err, io.EOF) {
			return judged, nil
		} else if err != nil {
			return judged, fmt.Errorf("cannot read CRD %d: %w", judged+1, err)
		}
		problems, err := refusals(crd)
		if err != nil {
			return judged, fmt.Errorf("cannot convert %s: %w", crd.Name, err)
		}
		for _, problem := range problems {
			fmt.Fprintf(out, "%s: %s\n", crd.Name, problem)
		}
	}
}

func refusals(crd apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&crd)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
		return nil, err
	}
	// What an API server records when it stores a new one.
	for _, version := range internal.Spec.Versions {
		if version.Storage {
			internal.Status.StoredVersions = []string{version.Name}
		}
	}
	var problems []string
	for _, problem := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
		problems = append(problems, problem.Error())
	}
	return problems, nil
}
