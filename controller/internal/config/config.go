// SPDX-License-Identifier: Apache-2.0

// Package config answers what the controller was told in its configuration
// file. A file is read over the defaults, so an absent or null section means
// its default; a key that nobody knows is refused by name, so that a typing
// error cannot pass for a setting.
package config

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/internal/podtemplate"
)

// Config is the whole file. Keys and defaults are those of existing AppWrapper
// installations; clientConnection, concurrency, appwrapper.podSetLimit,
// appwrapper.componentLimit, appwrapper.kueue, appwrapper.policies, appwrapper.resetSurplusPods,
// appwrapper.autopilot.migrationLimit, appwrapper.nodeHealth, appwrapper.preemptionPause,
// appwrapper.deviceActivity, appwrapper.slackQueueNames and controllerManager.ignoreOtherControllers are additions.
type Config struct {
	AppWrapper        AppWrapper        `json:"appwrapper"`
	CertManagement    CertManagement    `json:"certManagement"`
	ControllerManager ControllerManager `json:"controllerManager"`
	// WebhooksEnabled switches admission off for development. Nothing then stops an
	// author from wrapping what they may not create themselves.
	WebhooksEnabled  bool             `json:"webhooksEnabled"`
	ClientConnection ClientConnection `json:"clientConnection"`
	// Concurrency is how many AppWrappers are worked on at the same time.
	Concurrency int `json:"concurrency"`
}

// AppWrapper is what shapes the handling of AppWrappers.
type AppWrapper struct {
	Autopilot Autopilot `json:"autopilot"`
	// NodeHealth says how else a node shows that it is unhealthy; see Autopilot for labels.
	NodeHealth NodeHealth `json:"nodeHealth"`
	// UserRBACAdmissionCheck asks the API server whether an author may create what they wrap.
	UserRBACAdmissionCheck bool           `json:"userRBACAdmissionCheck"`
	FaultTolerance         FaultTolerance `json:"faultTolerance"`
	// ResetSurplusPods: an AppWrapper whose pods exceed its pod sets is reset, and not only reported.
	ResetSurplusPods bool `json:"resetSurplusPods"`
	// SchedulerName is given to pod templates that name no scheduler; empty leaves them alone.
	SchedulerName string `json:"schedulerName"`
	// DefaultQueueName is the queue of AppWrappers that come without a queue label; empty sets none.
	DefaultQueueName string `json:"defaultQueueName"`
	// SlackQueueName and SlackQueueNames are of ClusterQueues whose quota shrinks with the nodes.
	SlackQueueName  string   `json:"slackQueueName"`
	SlackQueueNames []string `json:"slackQueueNames"`
	// PodSetLimit is the most pod sets that one AppWrapper may have: 8 up to Kueue 0.18, 18 from 0.19.
	PodSetLimit int `json:"podSetLimit"`
	// DeviceActivity is a second sign that work hangs or is idle.
	DeviceActivity DeviceActivity `json:"deviceActivity"`
	// PreemptionPause is how long work waits that is preempted again and again.
	PreemptionPause PreemptionPause `json:"preemptionPause"`
	// ComponentLimit is the most components that one AppWrapper may have.
	ComponentLimit int   `json:"componentLimit"`
	Kueue          Kueue `json:"kueue"`
	// Policies says which policies of the chart mlbatch the cluster has.
	Policies Policies `json:"policies"`
	// ExtraKinds may be wrapped with declared pod sets, beside those that we know.
	ExtraKinds []ExtraKind `json:"extraKinds"`

	legacyAppWrapper
}

// Kueue says who starts and stops AppWrappers that are queued.
type Kueue struct {
	// ServiceAccounts are those of Kueue: only they write podSetInfos. Each is
	// "namespace/name", or a name in the controller's own namespace.
	ServiceAccounts []string `json:"serviceAccounts"`
	// ManagedJobsNamespaceSelector is that of Kueue's own configuration. An author who
	// names a queue elsewhere is warned; nil warns nobody.
	ManagedJobsNamespaceSelector *metav1.LabelSelector `json:"managedJobsNamespaceSelector"`
}

// Policies of the API server refuse pods and other objects. What one of them would refuse is
// refused when its AppWrapper is created, before it gets quota.
type Policies struct {
	PodSecurity bool `json:"podSecurity"`
	Placement   bool `json:"placement"`
	Exposure    bool `json:"exposure"`
}

// legacyAppWrapper holds keys that earlier AppWrapper releases acted on. They are
// accepted so that an existing file still loads, and each is answered with a note.
type legacyAppWrapper struct {
	EnableKueueIntegrations json.RawMessage `json:"enableKueueIntegrations,omitempty"`
	KueueJobReconciller     json.RawMessage `json:"kueueJobReconciller,omitempty"`
}

// Autopilot says which node labels mean that a resource of that node is unhealthy.
type Autopilot struct {
	InjectAntiAffinities   bool  `json:"injectAntiAffinities"`
	MonitorNodes           bool  `json:"monitorNodes"`
	PreferNoScheduleWeight int32 `json:"preferNoScheduleWeight"`
	// MigrationLimit is how often one AppWrapper is reset to leave unhealthy nodes.
	MigrationLimit int32                     `json:"migrationLimit"`
	ResourceTaints map[string][]corev1.Taint `json:"resourceTaints"`
}

// Avoidance is how pods keep away from nodes with labels that mean so.
func (a Autopilot) Avoidance() podtemplate.Avoidance {
	if !a.InjectAntiAffinities {
		return podtemplate.Avoidance{}
	}
	return podtemplate.Avoidance{Taints: a.ResourceTaints, Weight: a.PreferNoScheduleWeight}
}

// CertManagement names the objects through which the webhooks get their certificate.
type CertManagement struct {
	// CertManager: cert-manager keeps the certificate, which is mounted at CertificateDir,
	// and has the webhook configurations trust it.
	CertManager bool `json:"certManager"`
	// Namespace of the Secret and the Service; empty means the controller's own.
	Namespace                   string `json:"namespace"`
	CertificateDir              string `json:"certificateDir"`
	CertificateName             string `json:"certificateName"`
	CertificateOrg              string `json:"certificateOrg"`
	MutatingWebhookConfigName   string `json:"mutatingWebhookConfigName"`
	ValidatingWebhookConfigName string `json:"validatingWebhookConfigName"`
	WebhookServiceName          string `json:"webhookServiceName"`
	WebhookSecretName           string `json:"webhookSecretName"`
}

// ControllerManager is about the process: what it serves and who leads.
type ControllerManager struct {
	Metrics        Metrics  `json:"metrics"`
	Health         Endpoint `json:"health"`
	LeaderElection bool     `json:"leaderElection"`
	// LeaseDuration is how long others wait for a leader that does not renew its Lease.
	LeaseDuration Duration `json:"leaseDuration"`
	// IgnoreOtherControllers: start without checking whether another AppWrapper controller is active.
	IgnoreOtherControllers bool `json:"ignoreOtherControllers"`
	EnableHTTP2            bool `json:"enableHTTP2"`
}

// Metrics is the metrics endpoint, always TLS with authentication and authorization.
type Metrics struct {
	// BindAddress such as ":8443"; "0" serves no metrics.
	BindAddress string `json:"bindAddress"`
	// SecureServing is a key of AppWrapper 0.30, accepted and answered with a note.
	SecureServing json.RawMessage `json:"secureServing,omitempty"`
}

// Endpoint is something that listens.
type Endpoint struct {
	BindAddress string `json:"bindAddress"`
}

// ClientConnection bounds the requests that the controller sends, those for each kind of
// object by themselves.
type ClientConnection struct {
	QPS   float32 `json:"qps"`
	Burst int     `json:"burst"`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		AppWrapper: AppWrapper{
			Autopilot:              defaultAutopilot(),
			NodeHealth:             defaultNodeHealth(),
			UserRBACAdmissionCheck: true,
			FaultTolerance:         defaultFaultTolerance(),
			ResetSurplusPods:       true,
			PodSetLimit:            8,
			PreemptionPause:        defaultPreemptionPause(),
			DeviceActivity:         defaultDeviceActivity(),
			ComponentLimit:         64,
			Kueue:                  Kueue{ServiceAccounts: []string{"kueue-controller-manager", "kueue-system/kueue-controller-manager"}},
		},
		CertManagement: CertManagement{
			CertificateDir:              "/tmp/k8s-webhook-server/serving-certs",
			CertificateName:             "appwrapper-ca",
			CertificateOrg:              "appwrapper",
			MutatingWebhookConfigName:   "appwrapper-mutating-webhook-configuration",
			ValidatingWebhookConfigName: "appwrapper-validating-webhook-configuration",
			WebhookServiceName:          "appwrapper-webhook-service",
			WebhookSecretName:           "appwrapper-webhook-server-cert",
		},
		ControllerManager: ControllerManager{
			Metrics:       Metrics{BindAddress: ":8443"},
			Health:        Endpoint{BindAddress: ":8081"},
			LeaseDuration: Duration{15 * time.Second}, // as in controller-runtime
		},
		WebhooksEnabled:  true,
		ClientConnection: ClientConnection{QPS: 1000, Burst: 1000},
		Concurrency:      16,
	}
}

func defaultAutopilot() Autopilot {
	const gpuHealth = "autopilot.ibm.com/gpuhealth"
	return Autopilot{
		InjectAntiAffinities:   true,
		MonitorNodes:           true,
		PreferNoScheduleWeight: 50,
		MigrationLimit:         lifecycle.StandardDefaults().MigrationLimit,
		ResourceTaints: map[string][]corev1.Taint{
			"nvidia.com/gpu": {
				{Key: gpuHealth, Value: "WARN", Effect: corev1.TaintEffectPreferNoSchedule},
				{Key: gpuHealth, Value: "ERR", Effect: corev1.TaintEffectNoSchedule},
				{Key: gpuHealth, Value: "TESTING", Effect: corev1.TaintEffectNoSchedule},
				{Key: gpuHealth, Value: "EVICT", Effect: corev1.TaintEffectNoExecute},
			},
		},
	}
}
