// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// kueuesAccounts are those that the AppWrapper controller takes for Kueue if the values name none
// (controller/internal/config). A name without a namespace is in that of the controller.
var kueuesAccounts = []string{"kueue-controller-manager", "kueue-system/kueue-controller-manager"}

// kueueMayNotStartAppWrappers compares the account of the cluster's Kueue with those of the values.
func kueueMayNotStartAppWrappers(f Facts) []string {
	if f.on("kueue") || !f.on("appwrapper") {
		return nil
	}
	accounts := f.list("appwrapper", "config", "appwrapper", "kueue", "serviceAccounts")
	if len(accounts) == 0 {
		accounts = kueuesAccounts
	}
	var found []string
	for _, o := range f.Operators {
		account := o.Namespace + "/" + o.Account
		if o.Part != "kueue" || slices.Contains(accounts, account) || o.Namespace == f.Releases[0].Namespace && slices.Contains(accounts, o.Account) {
			continue
		}
		found = append(found, fmt.Sprintf("the cluster's Kueue could not start AppWrappers: add its service account %s to "+
			"appwrapper.config.appwrapper.kueue.serviceAccounts", account))
	}
	return found
}

// operatorMayNotControl is about operators of others, of parts that are off. Policies refuse their pods in
// namespaces of teams, unless they may act as a controller.
func operatorMayNotControl(f Facts) []string {
	var found []string
	for _, o := range f.Operators {
		part, known := parts.Named(o.Part)
		if !known || part.Enabled(f.Values) || f.mayControl(o) {
			continue
		}
		found = append(found, fmt.Sprintf("the cluster's %s, the service account %s/%s, may not act as a controller, so policies refuse what it creates "+
			"for teams: add the account to policies.controllers.serviceAccounts", part.Title, o.Namespace, o.Account))
	}
	return found
}

// mayControl reports whether the values give an operator the verb control, or nothing asks for it.
func (f Facts) mayControl(o Operator) bool {
	if !slices.ContainsFunc([]string{"ownership", "lifecycle", "labels", "growth"}, func(policy string) bool {
		enabled, _, _ := unstructured.NestedBool(f.Values, "policies", policy, "enabled")
		return enabled
	}) {
		return true
	}
	named, _, _ := unstructured.NestedFieldNoCopy(f.Values, "policies", "controllers", "serviceAccounts")
	accounts, _ := named.([]any)
	groups := f.list("policies", "controllers", "groups")
	return slices.Contains(groups, "system:serviceaccounts") || slices.Contains(groups, "system:serviceaccounts:"+o.Namespace) ||
		slices.ContainsFunc(accounts, func(a any) bool {
			account, _ := a.(map[string]any)
			return account["name"] == o.Account && account["namespace"] == o.Namespace
		})
}

// list is a list of strings of the values.
func (f Facts) list(path ...string) []string {
	items, _, _ := unstructured.NestedFieldNoCopy(f.Values, path...)
	list, _ := items.([]any)
	var all []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// kueueTakesFewerPodSets: Kueue before 0.19 refuses a Workload with more than 8 pod sets.
func kueueTakesFewerPodSets(f Facts) []string {
	const before = "<0.19.0-0"
	limit, _, _ := unstructured.NestedFieldNoCopy(f.Values, "appwrapper", "config", "appwrapper", "podSetLimit")
	number := fmt.Sprint(limit)
	if f.on("kueue") || !f.on("appwrapper") || !chartutil.IsCompatibleRange(before, f.Kueue.Version) || limit == nil || number == "8" {
		return nil
	}
	return []string{fmt.Sprintf("the cluster's Kueue %s takes at most 8 pod sets, and AppWrappers may have %s: set appwrapper.config.appwrapper.podSetLimit to 8", f.Kueue.Version, number)}
}

func kueueEvictsToo(f Facts) []string {
	if f.on("kueue") || !f.on("appwrapper") || !f.Kueue.Evicts {
		return nil
	}
	return []string{"the cluster's Kueue evicts work whose pods are not ready, which the AppWrapper controller starts again: remove waitForPodsReady from its " +
		"configuration, or set its feature gate DisableWaitForPodsReady to true"}
}

func otherGangSchedulerRuns(f Facts) []string {
	var found []string
	for _, o := range f.Operators {
		if f.on("coscheduler") && slices.Contains(parts.OtherGangSchedulers, o.Name) {
			found = append(found, fmt.Sprintf("another gang scheduler runs, the Deployment %s in namespace %s: both may place pods on the same devices; "+
				"keep their nodes apart, or remove one of them", o.Name, o.Namespace))
		}
	}
	return found
}

// acceleratorsHaveAnotherName: no node has the resource of the values, and some have one that looks like accelerators.
func acceleratorsHaveAnotherName(f Facts) []string {
	name, _, _ := unstructured.NestedString(f.Values, "global", "gpuResourceName")
	if name == "" || slices.Contains(f.Devices, name) {
		return nil
	}
	var others []string
	for _, device := range f.Devices {
		if slices.Contains(accelerators, device) || strings.HasPrefix(device, "nvidia.com/mig-") {
			others = append(others, device)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("no node has %s, and some have %s: set global.gpuResourceName to that, so that pods are packed by it and leave nodes where it is broken",
		name, strings.Join(others, " and "))}
}

// accelerators are the resources of common device plugins.
var accelerators = []string{
	"amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "gpu.intel.com/i915", "gpu.intel.com/xe", "google.com/tpu",
	"habana.ai/gaudi", "nvidia.com/gpu", "nvidia.com/gpu.shared",
}
