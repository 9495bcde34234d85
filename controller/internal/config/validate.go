// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *Config) validate() field.ErrorList {
	aw := field.NewPath("appwrapper")
	problems := c.AppWrapper.FaultTolerance.validate(aw.Child("faultTolerance"))
	problems = append(problems, c.AppWrapper.Autopilot.validate(aw.Child("autopilot"))...)
	problems = append(problems, c.AppWrapper.validateNodeHealth(aw.Child("nodeHealth"))...)
	problems = append(problems, atLeastOne(aw.Child("podSetLimit"), c.AppWrapper.PodSetLimit)...)
	problems = append(problems, atLeastOne(aw.Child("componentLimit"), c.AppWrapper.ComponentLimit)...)
	problems = append(problems, c.AppWrapper.Kueue.validate(aw.Child("kueue"))...)
	problems = append(problems, c.AppWrapper.PreemptionPause.validate(aw.Child("preemptionPause"))...)
	problems = append(problems, c.AppWrapper.DeviceActivity.validate(aw.Child("deviceActivity"))...)
	problems = append(problems, c.AppWrapper.validateSlackQueues(aw)...)
	problems = append(problems, validateExtraKinds(c.AppWrapper.ExtraKinds, aw.Child("extraKinds"))...)
	problems = append(problems, atLeastOne(field.NewPath("concurrency"), c.Concurrency)...)
	problems = append(problems, c.ClientConnection.validate(field.NewPath("clientConnection"))...)
	if queue := c.AppWrapper.DefaultQueueName; queue != "" {
		// It becomes the value of a label.
		for _, why := range append(validation.IsDNS1123Subdomain(queue), validation.IsValidLabelValue(queue)...) {
			problems = append(problems, field.Invalid(aw.Child("defaultQueueName"), queue, why))
		}
	}
	problems = append(problems, c.ControllerManager.validate(field.NewPath("controllerManager"))...)
	if c.WebhooksEnabled {
		problems = append(problems, c.CertManagement.validate(field.NewPath("certManagement"))...)
	}
	return problems
}

func (c *ClientConnection) validate(path *field.Path) field.ErrorList {
	problems := atLeastOne(path.Child("burst"), c.Burst)
	if c.QPS <= 0 {
		problems = append(problems, field.Invalid(path.Child("qps"), c.QPS, "must be greater than 0"))
	}
	return problems
}

func atLeastOne(path *field.Path, n int) field.ErrorList {
	if n >= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, n, "must be at least 1")}
}

func (a *Autopilot) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if a.PreferNoScheduleWeight < 1 || a.PreferNoScheduleWeight > 100 {
		problems = append(problems, field.Invalid(path.Child("preferNoScheduleWeight"), a.PreferNoScheduleWeight, "must be between 1 and 100"))
	}
	if a.MigrationLimit < 0 {
		problems = append(problems, field.Invalid(path.Child("migrationLimit"), a.MigrationLimit, "must not be negative"))
	}
	for resource, taints := range a.ResourceTaints {
		for i, taint := range taints {
			problems = append(problems, validateTaint(taint, path.Child("resourceTaints").Key(resource).Index(i))...)
		}
	}
	return problems
}

// validateTaint: key and value are those of a node label, and become part of the node
// affinity of pods, which the API server would refuse otherwise.
func validateTaint(taint corev1.Taint, at *field.Path) field.ErrorList {
	var problems field.ErrorList
	if taint.Key == "" {
		problems = append(problems, field.Required(at.Child("key"), "the node label to look at"))
	} else if why := validation.IsQualifiedName(taint.Key); len(why) > 0 {
		problems = append(problems, field.Invalid(at.Child("key"), taint.Key, strings.Join(why, "; ")))
	}
	if why := validation.IsValidLabelValue(taint.Value); len(why) > 0 {
		problems = append(problems, field.Invalid(at.Child("value"), taint.Value, strings.Join(why, "; ")))
	}
	effects := []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}
	if !slices.Contains(effects, string(taint.Effect)) {
		problems = append(problems, field.NotSupported(at.Child("effect"), string(taint.Effect), effects))
	}
	return problems
}

func (k *Kueue) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if len(k.ServiceAccounts) == 0 {
		problems = append(problems, field.Required(path.Child("serviceAccounts"), "without an account nobody could start what is in a queue; leave it out for the defaults"))
	}
	for i, account := range k.ServiceAccounts {
		namespace, name, named := strings.Cut(account, "/")
		if !named {
			namespace, name = "default", account
		}
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			problems = append(problems, field.Invalid(path.Child("serviceAccounts").Index(i), account,
				"must be namespace/name, or a name in the controller's own namespace"))
		}
	}
	options := metav1validation.LabelSelectorValidationOptions{}
	return append(problems, metav1validation.ValidateLabelSelector(k.ManagedJobsNamespaceSelector, options,
		path.Child("managedJobsNamespaceSelector"))...)
}

// A leader needs time for some requests before it gives its Lease up, and nobody believes a Lease
// that lasts longer (package othercontroller).
const (
	shortestLease = 5 * time.Second
	longestLease  = 5 * time.Minute
)

func (m *ControllerManager) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	listeners := []struct{ section, address string }{{"metrics", m.Metrics.BindAddress}, {"health", m.Health.BindAddress}}
	for _, l := range listeners {
		if _, _, err := net.SplitHostPort(l.address); err != nil && l.address != "0" {
			problems = append(problems, field.Invalid(path.Child(l.section, "bindAddress"), l.address, `must be an address such as ":8443", or "0"`))
		}
	}
	if d := m.LeaseDuration.Duration; d < shortestLease || d > longestLease || d%time.Second != 0 { // a Lease counts seconds
		problems = append(problems, field.Invalid(path.Child("leaseDuration"), d.String(), fmt.Sprintf("must be whole seconds between %s and %s", shortestLease, longestLease)))
	}
	return problems
}

func (m *CertManagement) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	required := []struct{ key, value string }{
		{"certificateDir", m.CertificateDir},
		{"certificateName", m.CertificateName},
		{"certificateOrg", m.CertificateOrg},
		{"mutatingWebhookConfigName", m.MutatingWebhookConfigName},
		{"validatingWebhookConfigName", m.ValidatingWebhookConfigName},
		{"webhookServiceName", m.WebhookServiceName},
		{"webhookSecretName", m.WebhookSecretName},
	}
	for _, r := range required {
		if r.value == "" {
			problems = append(problems, field.Required(path.Child(r.key), "the webhooks need it; set webhooksEnabled: false to do without"))
		}
	}
	return problems
}
