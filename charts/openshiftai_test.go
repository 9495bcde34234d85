// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// The kinds of OpenShift AI and of the Red Hat build of Kueue, as far as the samples use them. Their Go types need
// OpenShift's modules.
type (
	subscription struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Spec            struct {
			Channel             string `json:"channel"`
			InstallPlanApproval string `json:"installPlanApproval"`
			Name                string `json:"name"`
			Source              string `json:"source"`
			SourceNamespace     string `json:"sourceNamespace"`
		} `json:"spec"`
	}
	operatorGroup struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
	}
	dataScienceCluster struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Spec            struct {
			Components map[string]struct {
				ManagementState string `json:"managementState"`
			} `json:"components"`
		} `json:"spec"`
	}
	redHatKueue struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Spec            struct {
			ManagementState string `json:"managementState"`
			Config          struct {
				Integrations struct {
					Frameworks []string `json:"frameworks"`
				} `json:"integrations"`
				WorkloadManagement struct {
					LabelPolicy string `json:"labelPolicy"`
				} `json:"workloadManagement"`
				GangScheduling struct {
					Policy string `json:"policy"`
				} `json:"gangScheduling"`
				Preemption struct {
					PreemptionPolicy string `json:"preemptionPolicy"`
				} `json:"preemption"`
			} `json:"config"`
		} `json:"spec"`
	}
)

// components are those that a DataScienceCluster of each version has.
var components = map[string][]string{
	"datasciencecluster.opendatahub.io/v1": {
		"codeflare", "dashboard", "datasciencepipelines", "feastoperator", "kserve", "kueue", "llamastackoperator", "modelmeshserving",
		"modelregistry", "ray", "trainingoperator", "trustyai", "workbenches",
	},
	"datasciencecluster.opendatahub.io/v2": {
		"aipipelines", "dashboard", "feastoperator", "kserve", "kueue", "llamastackoperator", "modelregistry", "ray", "trainingoperator",
		"trustyai", "workbenches",
	},
}

func openShiftAI(t *testing.T, file string) string {
	t.Helper()
	return string(must(os.ReadFile(filepath.Join("..", "samples", "openshift-ai", file)))(t))
}

// Of two operators of a kind, one has to be theirs and the other one off, or the other way round.
func TestOpenShiftAIRunsWhatTheProfileDoesNot(t *testing.T) {
	in := values(t, must(setup.Profile("openshift-ai-own-kueue"))(t))
	whole := must(chartutil.CoalesceValues(load(t, "mlbatch"), in))(t)
	for _, file := range []string{"datasciencecluster-2.yaml", "datasciencecluster-3.yaml"} {
		cluster := strictly[dataScienceCluster](t, openShiftAI(t, file))
		known := components[cluster.APIVersion]
		for name, c := range cluster.Spec.Components {
			if !slices.Contains(known, name) || c.ManagementState != "Managed" && c.ManagementState != "Removed" {
				t.Errorf("%s: %s cannot have the component %s as %s", file, cluster.APIVersion, name, c.ManagementState)
			}
		}
		for component, part := range map[string]string{"kueue": "kueue", "trainingoperator": "training-operator", "ray": "kuberay-operator"} {
			p, _ := parts.Named(part)
			ours, theirs := p.Enabled(whole), cluster.Spec.Components[component].ManagementState == "Managed"
			if ours == theirs {
				t.Errorf("%s: our %s is on: %t; theirs is on: %t", file, part, ours, theirs)
			}
		}
		if slices.Contains(known, "codeflare") && cluster.Spec.Components["codeflare"].ManagementState != "Removed" {
			t.Errorf("%s: two AppWrapper controllers run", file)
		}
	}
}

// The Red Hat build of Kueue queues what members may create, and leaves retries to the AppWrapper controller.
func TestTheRedHatBuildOfKueueQueuesTheKindsOfThePlatform(t *testing.T) {
	k := strictly[redHatKueue](t, openShiftAI(t, "kueue.yaml"))
	want := []string{"AppWrapper"}
	for _, p := range parts.All {
		for _, kind := range p.Kinds {
			if kind.Bare && kind.Framework != "" && !p.Optional && kind.Name != "AppWrapper" {
				want = append(want, kind.Name)
			}
		}
	}
	slices.Sort(want)
	got := slices.Sorted(slices.Values(k.Spec.Config.Integrations.Frameworks))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("frameworks (-wanted +got)\n%s", diff)
	}
	c := k.Spec.Config
	if k.APIVersion != "kueue.openshift.io/v1" || k.Kind != "Kueue" || k.Metadata.Name != "cluster" || k.Spec.ManagementState != "Managed" {
		t.Errorf("it is not the one Kueue of the cluster: %+v", k)
	}
	if c.WorkloadManagement.LabelPolicy != "None" || c.GangScheduling.Policy != "None" || c.Preemption.PreemptionPolicy != "FairSharing" {
		t.Errorf("it is configured as %+v", c)
	}
}

func TestTheTeamsOfOpenShiftAILetItsKubeRayIn(t *testing.T) {
	in := values(t, []byte(openShiftAI(t, "teams.yaml")))
	if _, err := render(t, "teams", in); err != nil {
		t.Fatal(err)
	}
	kuberay := in["networkPolicy"].(map[string]any)["kuberayNamespace"]
	for _, profile := range []string{"openshift-ai", "openshift-ai-own-kueue"} {
		if !slices.ContainsFunc(controllersOf(t, values(t, must(setup.Profile(profile))(t))), func(s rbac.Subject) bool {
			return s.Name == "kuberay-operator" && s.Namespace == kuberay
		}) {
			t.Errorf("%s: no KubeRay is in %s", profile, kuberay)
		}
	}
}

// Upgrades of OpenShift AI can bring operators that the platform runs.
func TestOpenShiftAIWaitsForAnApproval(t *testing.T) {
	var in []string
	for _, text := range strings.Split(openShiftAI(t, "operator.yaml"), "\n---\n") {
		switch kind := kindOf(t, text); kind {
		case "v1 Namespace":
			in = append(in, strictly[corev1.Namespace](t, text).Name)
		case "operators.coreos.com/v1 OperatorGroup":
			in = append(in, strictly[operatorGroup](t, text).Metadata.Namespace)
		case "operators.coreos.com/v1alpha1 Subscription":
			s := strictly[subscription](t, text)
			in = append(in, s.Metadata.Namespace)
			if s.Spec.InstallPlanApproval != "Manual" || s.Spec.Name != "rhods-operator" || s.Spec.Channel == "" {
				t.Errorf("it subscribes to %+v", s.Spec)
			}
		default:
			t.Errorf("there is a %s", kind)
		}
	}
	if want := slices.Repeat([]string{"redhat-ods-operator"}, 3); !slices.Equal(in, want) {
		t.Errorf("its objects are in %q", in)
	}
}
