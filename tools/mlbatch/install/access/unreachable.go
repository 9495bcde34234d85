// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// notFound returns the error for a kubeconfig that selects no cluster. It names the contexts that there are.
func (c Cluster) notFound(err error) error {
	raw, rawErr := c.flags("").ToRawKubeConfigLoader().RawConfig()
	if _, known := raw.Contexts[c.Context]; rawErr != nil || c.Context == "" || known || len(raw.Contexts) == 0 {
		return fmt.Errorf("cannot find the cluster: check --kubeconfig and --context: %w", err)
	}
	return fmt.Errorf("cannot find the cluster: the kubeconfig has no context %q: choose one of %s", c.Context, strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
}

// loginProgram matches the error of a kubeconfig that logs in with a program which is not installed. What follows
// explains that on several lines.
var loginProgram = regexp.MustCompile(`getting credentials: exec: executable (\S+) not found`)

// unreachable returns the error for an API server that gives no answer, or none that can be used.
func unreachable(host string, err error) error {
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	switch program := loginProgram.FindStringSubmatch(err.Error()); {
	case program != nil:
		return fmt.Errorf("cannot log in to the cluster at %s: the kubeconfig needs the program %s: install it, or choose another --context", host, program[1])
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster at %s does not accept your credentials: log in again, or choose another --context", host)
	case errors.As(err, &alert):
		return fmt.Errorf("the cluster at %s does not accept the certificate of your kubeconfig: get a new kubeconfig: %w", host, alert)
	case errors.As(err, &certificate):
		return fmt.Errorf("cannot trust the cluster at %s: %s: %w", host, trust(certificate.Err), certificate.Err)
	case apierrors.IsNotFound(err), strings.Contains(err.Error(), "unable to parse the server version"):
		return fmt.Errorf("what answers at %s is not the API server of Kubernetes: correct server in the kubeconfig, or choose another --context", host)
	}
	return fmt.Errorf("cannot reach the cluster at %s: check --kubeconfig and --context: %w", host, err)
}

// trust says what to do about the certificate of an API server.
func trust(err error) string {
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew its certificate, or correct the clock of this machine"
	case errors.As(err, &name):
		return "correct server in the kubeconfig, or set tls-server-name there"
	default:
		return "correct certificate-authority in the kubeconfig, or get a new kubeconfig"
	}
}
