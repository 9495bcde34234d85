// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// IsDevice reports whether a resource is counted in pieces of hardware, such as nvidia.com/gpu: device plugins put
// their domain before the name, and never the domain of Kubernetes.
func IsDevice(name corev1.ResourceName) bool {
	domain, _, found := strings.Cut(string(name), "/")
	return found && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
