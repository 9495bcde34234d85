// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Runs is the whole file of the controller of Runs.
type Runs struct {
	// GPUResourceName is the resource that a size means by gpu.
	GPUResourceName string `json:"gpuResourceName"`
	// Gang makes PodGroups for pods that no operator groups. It needs the Coscheduler.
	Gang bool `json:"gang"`
	// AgentImage is of init containers in the pods of Runs. Code cannot be fetched without it.
	AgentImage string `json:"agentImage"`
	// Datashim lets inputs be Datasets of Datashim, too.
	Datashim bool `json:"datashim"`
	// BrokerResources are what the broker of a work queue requests.
	BrokerResources BrokerResources `json:"brokerResources"`
	// BrokerFSGroup is the group that the volume of a broker belongs to, if the Application names
	// none. OpenShift assigns one.
	BrokerFSGroup *int64 `json:"brokerFSGroup"`
	// WebhooksEnabled switches admission off for development. Then nobody knows who made a Run,
	// and none is accepted.
	WebhooksEnabled   bool              `json:"webhooksEnabled"`
	CertManagement    CertManagement    `json:"certManagement"`
	ControllerManager ControllerManager `json:"controllerManager"`
	ClientConnection  ClientConnection  `json:"clientConnection"`
}

// BrokerResources count for quota.
type BrokerResources struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}

// DefaultRuns is the configuration of an empty file of the controller of Runs.
func DefaultRuns() Runs {
	usual := Default()
	return Runs{
		GPUResourceName: "nvidia.com/gpu",
		Gang:            true,
		BrokerResources: BrokerResources{CPU: resource.MustParse("50m"), Memory: resource.MustParse("128Mi")},
		WebhooksEnabled: true,
		CertManagement: CertManagement{
			CertificateDir:              usual.CertManagement.CertificateDir,
			CertificateName:             "codeflare-ca",
			CertificateOrg:              "codeflare",
			MutatingWebhookConfigName:   "codeflare-mutating-webhook-configuration",
			ValidatingWebhookConfigName: "codeflare-validating-webhook-configuration",
			WebhookServiceName:          "codeflare-webhook-service",
			WebhookSecretName:           "codeflare-webhook-server-cert",
		},
		ControllerManager: usual.ControllerManager,
		ClientConnection:  usual.ClientConnection,
	}
}

// LoadRuns is Load for the file of the controller of Runs.
func LoadRuns(path string) (Runs, []string, error) {
	return load(path, ParseRuns)
}

// ParseRuns is LoadRuns for the content of a file.
func ParseRuns(data []byte) (Runs, []string, error) {
	c := DefaultRuns()
	if err := decode(data, &c); err != nil {
		return Runs{}, nil, err
	}
	if problems := c.validate(); len(problems) > 0 {
		return Runs{}, nil, problems.ToAggregate()
	}
	return c, withoutEffect(c.ControllerManager.legacy()), nil
}

func (c *Runs) validate() field.ErrorList {
	problems := append(c.ControllerManager.validate(field.NewPath("controllerManager")), c.ClientConnection.validate(field.NewPath("clientConnection"))...)
	at := field.NewPath("gpuResourceName")
	for _, why := range validation.IsQualifiedName(c.GPUResourceName) {
		problems = append(problems, field.Invalid(at, c.GPUResourceName, why))
	}
	if !strings.Contains(c.GPUResourceName, "/") {
		problems = append(problems, field.Invalid(at, c.GPUResourceName, "must have a domain, such as nvidia.com/gpu"))
	}
	at = field.NewPath("brokerResources")
	for name, amount := range map[string]resource.Quantity{"cpu": c.BrokerResources.CPU, "memory": c.BrokerResources.Memory} {
		if amount.Sign() <= 0 {
			problems = append(problems, field.Invalid(at.Child(name), amount.String(), "must be more than 0"))
		}
	}
	if group := c.BrokerFSGroup; group != nil && *group < 0 {
		problems = append(problems, field.Invalid(field.NewPath("brokerFSGroup"), *group, "must not be negative"))
	}
	if c.WebhooksEnabled {
		problems = append(problems, c.CertManagement.validate(field.NewPath("certManagement"))...)
	}
	return problems
}
