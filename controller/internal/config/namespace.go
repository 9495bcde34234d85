// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"strings"
)

const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace is where the controller runs: the environment variable
// NAMESPACE, else the namespace of the pod's service account.
func OwnNamespace() (string, error) {
	if namespace := os.Getenv("NAMESPACE"); namespace != "" {
		return namespace, nil
	}
	data, err := os.ReadFile(serviceAccountNamespace)
	if err != nil {
		return "", errors.New("cannot tell which namespace this is: set the environment variable NAMESPACE when running outside a cluster")
	}
	return strings.TrimSpace(string(data)), nil
}
