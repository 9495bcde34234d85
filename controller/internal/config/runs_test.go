// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestTheFileOfTheControllerOfRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want func(*Runs)
	}{
		"an empty file means the defaults":  {"", func(*Runs) {}},
		"a null section means its defaults": {"controllerManager: null\ncertManagement: null\nclientConnection: null", func(*Runs) {}},
		"a setting changes only itself":     {"gang: false", func(c *Runs) { c.Gang = false }},
		"another accelerator":               {"gpuResourceName: amd.com/gpu", func(c *Runs) { c.GPUResourceName = "amd.com/gpu" }},
		"an image of the agent":             {"agentImage: agent:1", func(c *Runs) { c.AgentImage = "agent:1" }},
		"Datasets of Datashim":              {"datashim: true", func(c *Runs) { c.Datashim = true }},
		"more for brokers":                  {"brokerResources: {memory: 1Gi}", func(c *Runs) { c.BrokerResources.Memory = resource.MustParse("1Gi") }},
		"a group of brokers":                {"brokerFSGroup: 7", func(c *Runs) { c.BrokerFSGroup = ptr.To(int64(7)) }},
		"a null of brokers":                 {"brokerResources: null\nbrokerFSGroup: null", func(*Runs) {}},
		"sections are those of the other file": {
			"controllerManager: {leaderElection: true}\ncertManagement: {certManager: true}\nclientConnection: {qps: 5}",
			func(c *Runs) {
				c.ControllerManager.LeaderElection, c.CertManagement.CertManager, c.ClientConnection.QPS = true, true, 5
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := DefaultRuns()
			tc.want(&want)
			got, notes, err := ParseRuns([]byte(tc.file))
			if err != nil || len(notes) > 0 {
				t.Fatalf("notes %q, error %v", notes, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatTheFileOfTheControllerOfRunsMayNotHave(t *testing.T) {
	for file, want := range map[string]string{
		"gangs: true":                                   "unknown key gangs: did you mean gang?",
		"appwrapper: {}":                                "unknown key appwrapper",
		"gang: 1":                                       "gang: a number does not belong here, a boolean (true or false) does",
		"gpuResourceName: gpu":                          "gpuResourceName: Invalid value: \"gpu\": must have a domain, such as nvidia.com/gpu",
		"gpuResourceName: 'nvidia.com/ gpu'":            "gpuResourceName: Invalid value",
		"brokerResources: {cpu: 0}":                     "brokerResources.cpu: Invalid value: \"0\": must be more than 0",
		"brokerResources: {gpu: 1}":                     "unknown key brokerResources.gpu",
		"brokerFSGroup: -1":                             "brokerFSGroup: Invalid value: -1: must not be negative",
		"clientConnection: {burst: 0}":                  "clientConnection.burst: Invalid value: 0: must be at least 1",
		"clientConnection: {qps: 0}":                    "clientConnection.qps: Invalid value: 0: must be greater than 0",
		"certManagement: {webhookSecretName: ''}":       "certManagement.webhookSecretName: Required value",
		"controllerManager: {health: {bindAddress: x}}": "controllerManager.health.bindAddress: Invalid value",
	} {
		if _, _, err := ParseRuns([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nwant %q in: %v", file, want, err)
		}
	}
	if _, _, err := ParseRuns([]byte("webhooksEnabled: false\ncertManagement: {webhookSecretName: ''}")); err != nil {
		t.Errorf("without webhooks no certificate is needed: %v", err)
	}
}

func TestLoadRunsNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("gang: maybe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := LoadRuns(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a bad file is not named: %v", err)
	}
}
