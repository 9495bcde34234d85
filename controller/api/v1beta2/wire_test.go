// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Scripts, dashboards and Kueue depend on these names.
func TestWordsKeepTheirSpelling(t *testing.T) {
	for want, got := range map[string]string{
		"workload.codeflare.dev/appwrapper-controller": AppWrapperControllerName,
		"workload.codeflare.dev/appwrapper":            AppWrapperLabel,
		"workload.codeflare.dev/user":                  UserLabel,
		"workload.codeflare.dev/userid":                UserIDLabel,
		"workload.codeflare.dev/finalizer":             AppWrapperFinalizer,
		"kueue.x-k8s.io/queue-name":                    QueueNameLabel,
		"workload.codeflare.dev/cordoned":              CordonedAnnotation,
		"workload.codeflare.dev/uncordoned":            UncordonedAnnotation,

		"workload.codeflare.dev.appwrapper/admissionGracePeriodDuration":         AdmissionGracePeriodDurationAnnotation,
		"workload.codeflare.dev.appwrapper/warmupGracePeriodDuration":            WarmupGracePeriodDurationAnnotation,
		"workload.codeflare.dev.appwrapper/initGracePeriodDuration":              InitGracePeriodDurationAnnotation,
		"workload.codeflare.dev.appwrapper/failureGracePeriodDuration":           FailureGracePeriodDurationAnnotation,
		"workload.codeflare.dev.appwrapper/retryPausePeriodDuration":             RetryPausePeriodDurationAnnotation,
		"workload.codeflare.dev.appwrapper/retryLimit":                           RetryLimitAnnotation,
		"workload.codeflare.dev.appwrapper/forcefulDeletionGracePeriodDuration":  ForcefulDeletionGracePeriodAnnotation,
		"workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration": DeletionOnFailureGracePeriodAnnotation,
		"workload.codeflare.dev.appwrapper/successTTLDuration":                   SuccessTTLAnnotation,
		"workload.codeflare.dev.appwrapper/terminalExitCodes":                    TerminalExitCodesAnnotation,
		"workload.codeflare.dev.appwrapper/retryableExitCodes":                   RetryableExitCodesAnnotation,
		"workload.codeflare.dev.appwrapper/lastCheckpoint":                       LastCheckpointAnnotation,
		"workload.codeflare.dev.appwrapper/tas-pod-index-label":                  PodSetAnnotationTASPodIndexLabel,
		"workload.codeflare.dev.appwrapper/tas-sub-group-index-label":            PodSetAnnotationTASSubGroupIndexLabel,
		"workload.codeflare.dev.appwrapper/tas-sub-group-count":                  PodSetAnnotationTASSubGroupCount,

		"Suspended": string(AppWrapperSuspended), "Resuming": string(AppWrapperResuming), "Running": string(AppWrapperRunning),
		"Resetting": string(AppWrapperResetting), "Suspending": string(AppWrapperSuspending), "Succeeded": string(AppWrapperSucceeded),
		"Failed": string(AppWrapperFailed), "Terminating": string(AppWrapperTerminating),

		"QuotaReserved": string(QuotaReserved), "ResourcesDeployed": string(ResourcesDeployed), "PodsReady": string(PodsReady),
		"Finished": string(Finished), "Requeued": string(Requeued), "Deactivated": string(Deactivated),
		"NoProgress":  ReasonNoProgress,
		"CrashLoop":   ReasonCrashLoop,
		"SurplusPods": ReasonSurplusPods, "NoSurplusPods": ReasonNoSurplusPods,
		"Unhealthy": string(Unhealthy), "DeletingResources": string(DeletingResources),

		"Admitted": ReasonAdmitted, "SufficientPodsReady": ReasonSufficientPodsReady, "InsufficientPodsReady": ReasonInsufficientPodsReady,
		"CreateFailed": ReasonCreateFailed, "MissingComponent": ReasonMissingComponent, "FailedComponent": ReasonFailedComponent,
		"FoundFailedPods": ReasonFoundFailedPods, "FoundNoFailedPods": ReasonFoundNoFailedPods, "AutopilotNoExecute": ReasonAutopilotNoExecute,
		"DeletionInitiated": ReasonDeletionInitiated, "DeletionComplete": ReasonDeletionComplete, "DeletionPaused": ReasonDeletionPaused,
		"ComponentCreationInitiated": ReasonComponentCreationInitiated, "ComponentCreatedSuccessfully": ReasonComponentCreatedSuccessfully,
		"ComponentCreationErrored": ReasonComponentCreationErrored, "ComponentDeleted": ReasonComponentDeleted,
	} {
		if got != want {
			t.Errorf("%q is written as %q", want, got)
		}
	}
}

// definition has the fields of a CRD that the test reads.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group, Scope string
		Names        struct {
			Kind, ListKind, Plural, Singular string
			ShortNames, Categories           []string
		}
		Versions []struct {
			Name                     string
			Served, Storage          bool
			Subresources             map[string]any
			AdditionalPrinterColumns []struct{ Name, Type, JSONPath string }
			Schema                   struct{ OpenAPIV3Schema fields }
		}
	}
}

type fields struct {
	Type, Format         string
	Required             []string
	Properties           map[string]fields
	Items                *fields
	AdditionalProperties *fields
	Enum, Default        any
	Minimum, Maximum     *int64
	ListType             string   `json:"x-kubernetes-list-type"`
	ListMapKeys          []string `json:"x-kubernetes-list-map-keys"`
	Embedded             bool     `json:"x-kubernetes-embedded-resource"`
	Preserve             bool     `json:"x-kubernetes-preserve-unknown-fields"`
	Validations          any      `json:"x-kubernetes-validations"`
}

func ours(t *testing.T) definition {
	t.Helper()
	text, err := os.ReadFile("../../../charts/appwrapper/files/crds/workload.codeflare.dev_appwrappers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d definition
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheDefinitionHasTheNamesAndColumnsOfAppWrapper12(t *testing.T) {
	d := ours(t)
	version := d.Spec.Versions[0]
	got := []string{
		d.Metadata.Name, d.Spec.Group, d.Spec.Scope, d.Spec.Names.Kind, d.Spec.Names.ListKind, d.Spec.Names.Plural, d.Spec.Names.Singular,
		fmt.Sprint(d.Spec.Names.ShortNames, d.Spec.Names.Categories), version.Name,
		fmt.Sprint(len(d.Spec.Versions), version.Served, version.Storage, slices.Collect(maps.Keys(version.Subresources))),
	}
	for _, c := range version.AdditionalPrinterColumns {
		got = append(got, strings.Join([]string{c.Name, c.Type, c.JSONPath}, " "))
	}
	want := []string{
		"appwrappers.workload.codeflare.dev", "workload.codeflare.dev", "Namespaced", "AppWrapper", "AppWrapperList", "appwrappers", "appwrapper",
		"[aw] []", "v1beta2", "1 true true [status]",
		"Status string .status.phase",
		`Quota Reserved string .status.conditions[?(@.type=="QuotaReserved")].status`,
		`Resources Deployed string .status.conditions[?(@.type=="ResourcesDeployed")].status`,
		`Unhealthy string .status.conditions[?(@.type=="Unhealthy")].status`,
		"Age date .metadata.creationTimestamp",
		`Reason string .status.conditions[?(@.type=="QuotaReserved")].reason`, // ours
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The schema has the fields of AppWrapper 1.2. Additions are marked with a plus. Nothing else
// is required, limited or defaulted, except that replicas must not be negative.
func TestTheDefinitionHasTheFieldsOfAppWrapper12(t *testing.T) {
	root := ours(t).Spec.Versions[0].Schema.OpenAPIV3Schema
	var got []string
	flatten("spec", root.Properties["spec"], &got)
	flatten("status", root.Properties["status"], &got)
	want := strings.Fields(`
		spec:object!components
		spec.components:array
		spec.components[]:object!template
		spec.components[].annotations:object
		spec.components[].annotations{}:string
		spec.components[].podSetInfos:array
		spec.components[].podSetInfos[]:object
		spec.components[].podSetInfos[].annotations:object
		spec.components[].podSetInfos[].annotations{}:string
		spec.components[].podSetInfos[].labels:object
		spec.components[].podSetInfos[].labels{}:string
		spec.components[].podSetInfos[].nodeSelector:object
		spec.components[].podSetInfos[].nodeSelector{}:string
		spec.components[].podSetInfos[].schedulingGates:array
		spec.components[].podSetInfos[].schedulingGates[]:object!name
		spec.components[].podSetInfos[].schedulingGates[].name:string
		spec.components[].podSetInfos[].tolerations:array
		spec.components[].podSetInfos[].tolerations[]:object
		spec.components[].podSetInfos[].tolerations[].effect:string
		spec.components[].podSetInfos[].tolerations[].key:string
		spec.components[].podSetInfos[].tolerations[].operator:string
		spec.components[].podSetInfos[].tolerations[].tolerationSeconds:integer
		spec.components[].podSetInfos[].tolerations[].value:string
		spec.components[].podSets:array
		spec.components[].podSets[]:object!path
		spec.components[].podSets[].annotations:object
		spec.components[].podSets[].annotations{}:string
		spec.components[].podSets[].path:string
		spec.components[].podSets[].replicas:integer>=0
		spec.components[].template:object,embedded,preserved
		spec.managedBy:string
		spec.suspend:boolean
		status:object
		status.componentStatus:array
		status.componentStatus[]:object!apiVersion,kind,name,podSets
		status.componentStatus[].apiVersion:string
		status.componentStatus[].conditions:array,bytype
		status.componentStatus[].kind:string
		status.componentStatus[].name:string
		status.componentStatus[].podSets:array
		status.componentStatus[].podSets[]:object!path
		status.componentStatus[].succeededPods:array
		status.componentStatus[].succeededPods[]:integer
		status.componentStatus[].succeededPodsUntil:string
		status.componentStatus[].podSets[].annotations:object
		status.componentStatus[].podSets[].annotations{}:string
		status.componentStatus[].podSets[].path:string
		status.componentStatus[].podSets[].replicas:integer>=0
		status.conditions:array,bytype
		+status.avoidedNodes:array
		+status.avoidedNodes[]:object!cause,name,until
		+status.avoidedNodes[].cause:string
		+status.avoidedNodes[].name:string
		+status.avoidedNodes[].since:string
		+status.avoidedNodes[].until:string
		+status.failedNode:object!cause,lastedSeconds,name,until
		+status.failedNode.cause:string
		+status.failedNode.lastedSeconds:integer
		+status.failedNode.name:string
		+status.failedNode.until:string
		+status.failureRetries:integer
		+status.lastAttempts:array
		+status.lastAttempts[]:object!began,cause,ended
		+status.lastAttempts[].ended:string
		+status.lastAttempts[].cause:string
		+status.lastAttempts[].reason:string
		+status.lastAttempts[].pod:string
		+status.lastAttempts[].podSet:integer
		+status.lastAttempts[].rank:string
		+status.lastAttempts[].node:string
		+status.lastAttempts[].container:string
		+status.lastAttempts[].exitCode:integer
		+status.lastAttempts[].ranSeconds:integer
		+status.lastAttempts[].failedByItself:boolean
		+status.lastAttempts[].lastWords:string
		+status.lastAttempts[].began:string
		+status.migrations:integer
		+status.preemptions:integer
		+status.usage:object!at
		+status.usage.at:string
		+status.usage.startingSeconds:integer
		+status.usage.inFlightSeconds:integer
		+status.usage.idleSeconds:integer
		+status.usage.usefulSeconds:integer
		+status.usage.lostToNodeSeconds:integer
		+status.usage.lostToFailureSeconds:integer
		+status.usage.lostToHangSeconds:integer
		+status.usage.lostToPreemptionSeconds:integer
		+status.usage.pausingSeconds:integer
		+status.usage.endingSeconds:integer
		+status.usage.heldSeconds:integer
		status.phase:string
		+status.phaseTransitionTime:string
		status.resettingCount:integer
		+status.startupRetries:integer`)
	for i := range want {
		want[i] = strings.TrimPrefix(want[i], "+")
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// flatten adds a line for each field below path, without the fields of conditions.
func flatten(path string, s fields, lines *[]string) {
	line := path + ":" + s.Type
	if len(s.Required) > 0 && !slices.Equal(s.ListMapKeys, []string{"type"}) {
		line += "!" + strings.Join(s.Required, ",")
	}
	if s.Minimum != nil || s.Maximum != nil {
		line += fmt.Sprintf(">=%d", *s.Minimum)
	}
	if s.Enum != nil || s.Default != nil || s.Validations != nil {
		line += ",restricted"
	}
	if s.Embedded && s.Preserve {
		line += ",embedded,preserved"
	}
	byType := slices.Equal(s.ListMapKeys, []string{"type"}) && s.ListType == "map"
	if byType {
		line += ",bytype"
	}
	*lines = append(*lines, line)
	for name, property := range s.Properties {
		flatten(path+"."+name, property, lines)
	}
	if s.Items != nil && !byType {
		flatten(path+"[]", *s.Items, lines)
	}
	if s.AdditionalProperties != nil {
		flatten(path+"{}", *s.AdditionalProperties, lines)
	}
}
