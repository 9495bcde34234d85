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

func kubernetesIsNotSupported(f Facts) []string {
	if chartutil.IsCompatibleRange(f.Supported.Kubernetes, f.Kubernetes) {
		return nil
	}
	return []string{fmt.Sprintf("this cluster has Kubernetes %s, and MLBatch needs %s: use another cluster, or upgrade this one",
		f.Kubernetes, inWords(f.Supported.Kubernetes))}
}

// inWords formats a version range for users: ">=1.30.0-0 <1.38.0-0" is "1.30.0 to before 1.38.0".
func inWords(constraint string) string {
	return strings.NewReplacer("-0", "", ">=", "", " <", " to before ").Replace(constraint)
}

func rightsAreMissing(f Facts) []string {
	if len(f.Denied) == 0 {
		return nil
	}
	return []string{Denied(f.Denied...)}
}

// Denied returns the sentence about missing rights.
func Denied(rights ...string) string {
	return "you may not " + strings.Join(rights, ", ") + " here: use the credentials of a cluster administrator (--kubeconfig, --context)"
}

// on reports whether the values enable a part.
func (f Facts) on(name string) bool {
	part, known := parts.Named(name)
	return known && part.Enabled(f.Values)
}

func otherOperatorRuns(f Facts) []string {
	var found []string
	for _, o := range f.Operators {
		part, known := parts.Named(o.Part)
		if !known || !part.Enabled(f.Values) {
			continue
		}
		found = append(found, fmt.Sprintf("another %s runs already, the Deployment %s in namespace %s: disable ours with --set %s.enabled=false "+
			"and set theirs as docs/install.md says, or remove theirs first", part.Title, o.Name, o.Namespace, part.Name))
	}
	return found
}

// kueueIsMissing checks for Kueue: without it, no work would ever start.
func kueueIsMissing(f Facts) []string {
	if f.on("kueue") || f.Kueue.Served {
		return nil
	}
	return []string{"the cluster has no Kueue, and kueue.enabled is false: set it to true, or install Kueue first"}
}

func kueueIsNotSupported(f Facts) []string {
	if f.on("kueue") || !f.Kueue.Served {
		return nil
	}
	from, _, _ := strings.Cut(f.Supported.Kueue, " ")
	older := f.Kueue.Version != "" && !chartutil.IsCompatibleRange(from, f.Kueue.Version)
	switch {
	case older:
		return []string{fmt.Sprintf("the cluster's Kueue is %s: upgrade it to %s or later first", f.Kueue.Version, inWords(from))}
	case f.Kueue.Version != "" && !chartutil.IsCompatibleRange(f.Supported.Kueue, f.Kueue.Version):
		return []string{fmt.Sprintf("the cluster's Kueue is %s, and this release knows Kueue %s: 0.20 no longer serves kueue.x-k8s.io/v1beta1 "+
			"and can lower quotas itself; use an older Kueue, or a release of MLBatch that knows this one", f.Kueue.Version, inWords(f.Supported.Kueue))}
	case !f.Kueue.Current:
		return []string{fmt.Sprintf("the cluster's Kueue does not serve kueue.x-k8s.io/v1beta2: upgrade it to %s or later first", inWords(from))}
	}
	return nil
}

func kueueDoesNotKnowAppWrappers(f Facts) []string {
	if f.on("kueue") || !f.on("appwrapper") || !f.Kueue.Configured || slices.Contains(f.Kueue.Frameworks, "workload.codeflare.dev/appwrapper") {
		return nil
	}
	return []string{"AppWrappers would never start: add workload.codeflare.dev/appwrapper to integrations.frameworks in the configuration of the cluster's Kueue"}
}

func kueueIgnoresWorkWithoutQueue(f Facts) []string {
	if f.on("kueue") || !f.Kueue.Configured || f.Kueue.ManagesAll {
		return nil
	}
	return []string{"work that names no queue runs without quota: set manageJobsWithoutQueueName and managedJobsNamespaceSelector of the cluster's Kueue as docs/install.md says"}
}

// podGroupsAreMissing checks for PodGroups: the training operator does not start without them.
func podGroupsAreMissing(f Facts) []string {
	if f.on("coscheduler") || !f.on("training-operator") || f.PodGroups {
		return nil
	}
	return []string{"the training operator needs PodGroups of scheduling.x-k8s.io, which the cluster does not have: leave coscheduler.enabled at true, install a Coscheduler first, or set training-operator.enabled to false"}
}

func profileIsNotForOpenShift(f Facts) []string {
	if !f.OpenShift || f.openShiftIsMeant() {
		return nil
	}
	return []string{"this cluster is OpenShift, which may reject the pods of these values: use --profile openshift or --profile openshift-ai"}
}

func profileIsForOpenShift(f Facts) []string {
	if f.OpenShift || !f.openShiftIsMeant() {
		return nil
	}
	return []string{"the values are for OpenShift, but this cluster is not: use another --profile"}
}

func (f Facts) openShiftIsMeant() bool {
	roles, _ := f.Values["roles"].(map[string]any)
	meant, _ := roles["openshift"].(bool)
	return meant
}

// CodeFlareOperator is the Deployment of the CodeFlare operator. It contains an AppWrapper
// controller, which can be disabled.
const CodeFlareOperator = "codeflare-operator-manager"

func codeFlareOperatorRuns(f Facts) []string {
	for _, o := range f.Operators {
		if o.Name == CodeFlareOperator && f.on("appwrapper") {
			return []string{"the CodeFlare operator runs in namespace " + o.Namespace + ": ours does nothing until its AppWrapper controller is switched off (docs/takeover.md)"}
		}
	}
	return nil
}

// schedulerIsMissing looks for a Coscheduler by the name of our Deployment. It cannot find one
// with another name.
func schedulerIsMissing(f Facts) []string {
	name, _, _ := unstructured.NestedString(f.Values, "appwrapper", "config", "appwrapper", "schedulerName")
	part, _ := parts.Of(name)
	if f.on("coscheduler") || !f.on("appwrapper") || part.Name != "coscheduler" || f.runs("coscheduler") {
		return nil
	}
	return []string{"no Deployment of the scheduler " + name + " was found, and coscheduler.enabled is false: wrapped pods that name it stay Pending; name another with --set appwrapper.config.appwrapper.schedulerName"}
}
