// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
)

// KubeRay only reports these in an event of a RayCluster, and makes no pods. Its functions in validation.go
// (ValidateRayClusterSpec, ValidateRayJobSpec) would bring its modules into the controller.

// rayFaults are those of a resource whose cluster is at this path.
func rayFaults(path string) func(map[string]any) []Fault {
	return func(object map[string]any) []Fault {
		c := rayClusterOf(object, path)
		faults := slices.Concat(c.wrongGroups(), c.wrongAutoscaler(), c.wrongRedis(), c.wrongAuthentication())
		if strategy := text(c.spec, "upgradeStrategy", "type"); path != "spec" && strategy != "" {
			faults = append(faults, c.fault("upgradeStrategy.type", strategy, "leave it out: KubeRay has this for a RayCluster only"))
		}
		if path != "spec" && c.hasKubernetesTokens() {
			faults = append(faults, c.fault("authOptions.enableK8sTokenAuth", "true", "leave it out: KubeRay has this for a RayCluster only"))
		}
		return faults
	}
}

// rayJobFaults adds those of the job.
func rayJobFaults(object map[string]any) []Fault {
	faults := rayFaults("spec.rayClusterSpec")(object)
	for field, least := range map[string]int32{"backoffLimit": 0, "ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 1, "preRunningDeadlineSeconds": 1} {
		faults = append(faults, tooSmall(object, least, "spec", field)...)
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	mode := text(object, "spec", "submissionMode")
	if limit := numberOr(0, object, "spec", "backoffLimit"); mode == "InteractiveMode" && limit > 0 {
		faults = append(faults, Fault{Path: "spec.backoffLimit", Value: strconv.Itoa(int(limit)), Why: "leave it out: KubeRay does not try a job in InteractiveMode again"})
	}
	for _, field := range []string{"submitterPodTemplate", "submitterConfig"} {
		if mode == "SidecarMode" && present(object, "spec", field) {
			faults = append(faults, Fault{Path: "spec." + field, Value: mode, Why: "leave it out: in SidecarMode, KubeRay submits the job in the pod of the head"})
		}
	}
	return faults
}

// tooSmall is a fault if a number is less than that.
func tooSmall(object map[string]any, least int32, fields ...string) []Fault {
	n, found, err := integer(object, fields...)
	if err != nil || !found || n >= least {
		return nil
	}
	return []Fault{{Path: strings.Join(fields, "."), Value: strconv.Itoa(int(n)), Why: fmt.Sprintf("must be at least %d: KubeRay would make no pods", least)}}
}

// numberOr is a number of a resource, or that one.
func numberOr(otherwise int32, object map[string]any, fields ...string) int32 {
	if n, found, err := integer(object, fields...); err == nil && found {
		return n
	}
	return otherwise
}

// rayClusterSpec is the spec of a Ray cluster, and where it is.
type rayClusterSpec struct {
	path              string
	spec, annotations map[string]any
	// head is the first container of the head, with the variables that KubeRay reads.
	head map[string]any
}

func rayClusterOf(object map[string]any, path string) rayClusterSpec {
	c := rayClusterSpec{path: path, spec: inner(object, strings.Split(path, ".")...), annotations: inner(object, "metadata", "annotations")}
	if containers := items(c.spec, "headGroupSpec", "template", "spec", "containers"); len(containers) > 0 {
		c.head = containers[0]
	}
	return c
}

// inner is an object of a resource, nil if absent.
func inner(object map[string]any, fields ...string) map[string]any {
	raw, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	found, _ := raw.(map[string]any)
	return found
}

func (c rayClusterSpec) fault(field, value, why string) Fault {
	return Fault{Path: c.path + "." + field, Value: value, Why: why}
}

// variable is the value of a variable of the head.
func (c rayClusterSpec) variable(name string) (value string, found bool) {
	for _, v := range items(c.head, "env") {
		if text(v, "name") == name {
			return text(v, "value"), true
		}
	}
	return "", false
}

// mostReplicas are more than any Ray cluster has. KubeRay lists all replicas that are written, also those above
// maxReplicas, which it does not make.
const mostReplicas = 10000

func (c rayClusterSpec) wrongGroups() []Fault {
	faults := c.wrongGroup("headGroupSpec", inner(c.spec, "headGroupSpec"))
	groups := items(c.spec, "workerGroupSpecs")
	names := namesOf(groups, "groupName")
	for i, group := range groups {
		at := fmt.Sprintf("workerGroupSpecs[%d]", i)
		faults = append(faults, c.wrongGroup(at, group)...)
		faults = append(faults, c.wrongNumbers(at, group)...)
		if names[i] != "" {
			faults = append(faults, c.wrongName(at+".groupName", names[i])...)
		}
		if name := names[i]; name != "" && slices.Contains(names[:i], name) {
			faults = append(faults, c.fault(at+".groupName", name, "must not be the name of another group: KubeRay would take the pods of one for those of the other"))
		}
		if idle, found, err := integer(group, "idleTimeoutSeconds"); err == nil && found && (idle < 0 || text(c.spec, "autoscalerOptions", "version") != "v2") {
			faults = append(faults, c.fault(at+".idleTimeoutSeconds", strconv.Itoa(int(idle)), "leave it out: there is no autoscaler that could remove idle workers"))
		}
	}
	return faults
}

// wrongName: a label of the pods of a group has its name, and their own names have it in small letters.
func (c rayClusterSpec) wrongName(at, name string) []Fault {
	const inPods = "abcdefghijklmnopqrstuvwxyz0123456789-."
	if strings.Trim(strings.ToLower(name), inPods) != "" {
		return []Fault{c.fault(at, name, "use letters, digits and -: the names of its pods have it")}
	}
	return []Fault{{Path: c.path + "." + at, Value: name, Rule: LabelValue}}
}

// wrongNumbers are those of a group of workers.
func (c rayClusterSpec) wrongNumbers(at string, group map[string]any) (faults []Fault) {
	wrong := func(field string, n int32, why string) {
		faults = append(faults, c.fault(at+"."+field, strconv.Itoa(int(n)), why))
	}
	for _, field := range []string{"replicas", "minReplicas"} {
		if n := numberOr(0, group, field); n > mostReplicas {
			wrong(field, n, fmt.Sprintf("must be at most %d: KubeRay keeps a list of all, and would run out of memory", mostReplicas))
		}
	}
	if n := numberOr(1, group, "numOfHosts"); n < 1 {
		wrong("numOfHosts", n, "must be at least 1: KubeRay makes no pods, or one for each replica")
	}
	least := numberOr(0, group, "minReplicas") // pods are counted, so there is no negative maximum
	if least < 0 {
		wrong("minReplicas", least, "must not be negative")
	}
	if most := numberOr(least, group, "maxReplicas"); most >= 0 && least > most {
		wrong("minReplicas", least, fmt.Sprintf("must be at most maxReplicas, %d", most))
	}
	return faults
}

// wrongGroup finds what a group says twice, and labels that nothing can have.
func (c rayClusterSpec) wrongGroup(at string, group map[string]any) (faults []Fault) {
	parameters := inner(group, "rayStartParams")
	if present(parameters, "labels") {
		faults = append(faults, c.fault(at+".rayStartParams.labels", text(parameters, "labels"), "write them into the labels of the group"))
	}
	for _, amount := range []string{"num-cpus", "num-gpus", "memory", "resources"} {
		if value := text(parameters, amount); value != "" && len(inner(group, "resources")) > 0 {
			faults = append(faults, c.fault(at+".rayStartParams."+amount, value, "leave it out: the group has resources, too, and KubeRay takes one of the two"))
		}
	}
	labels := inner(group, "labels")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := c.path + "." + at + ".labels"
		faults = append(faults, Fault{Path: at, Value: key, Rule: LabelKey}, Fault{Path: at, Value: text(labels, key), Rule: LabelValue})
	}
	return faults
}

// wrongAutoscaler: enableInTreeAutoscaling is refused where pods are counted.
func (c rayClusterSpec) wrongAutoscaler() (faults []Fault) {
	const v2 = "RAY_enable_autoscaler_v2"
	if value, _ := c.variable(v2); value == "1" || value == "true" {
		faults = append(faults, c.fault("headGroupSpec.template.spec.containers[0].env", v2, "leave it out: the cluster has no autoscaler, and KubeRay makes no pods for one with this variable"))
	}
	return append(faults, tooSmall(map[string]any{c.path: c.spec}, 0, c.path, "autoscalerOptions", "idleTimeoutSeconds")...)
}

// wrongRedis finds what is written beside gcsFaultToleranceOptions, or instead of it.
func (c rayClusterSpec) wrongRedis() (faults []Fault) {
	const annotation, address, password = "ray.io/ft-enabled", "RAY_REDIS_ADDRESS", "REDIS_PASSWORD"
	const env, parameters = "headGroupSpec.template.spec.containers[0].env", "headGroupSpec.rayStartParams."
	tolerant := text(c.annotations, annotation)
	add := func(wrong bool, at, value, instead string) {
		if wrong {
			faults = append(faults, c.fault(at, value, "write it into gcsFaultToleranceOptions."+instead+": KubeRay makes no pods if it is here"))
		}
	}
	_, hasAddress := c.variable(address)
	_, hasPassword := c.variable(password)
	_, hasUser := c.variable("REDIS_USERNAME")
	user := text(c.spec, "headGroupSpec", "rayStartParams", "redis-username")
	options := present(c.spec, "gcsFaultToleranceOptions")
	add(hasAddress && (options || !strings.EqualFold(tolerant, "true")), env, address, "redisAddress")
	add(hasPassword && options, env, password, "redisPassword")
	add(options && text(c.spec, "headGroupSpec", "rayStartParams", "redis-password") != "", parameters+"redis-password", "…", "redisPassword")
	add(hasUser, env, "REDIS_USERNAME", "redisUsername")
	add(user != "", parameters+"redis-username", user, "redisUsername")
	for key, instead := range map[string]string{annotation: "", "ray.io/external-storage-namespace": ".externalStorageNamespace"} {
		if value := text(c.annotations, key); options && value != "" {
			faults = append(faults, Fault{Path: "metadata.annotations", Value: key, Why: "leave it out: gcsFaultToleranceOptions" + instead + " says the same, and KubeRay makes no pods if both do"})
		}
	}
	return faults
}

func (c rayClusterSpec) hasKubernetesTokens() bool {
	return inner(c.spec, "authOptions")["enableK8sTokenAuth"] == true
}

// wrongAuthentication: KubeRay has to know that the version of Ray has tokens.
func (c rayClusterSpec) wrongAuthentication() (faults []Fault) {
	const tokens = "authOptions.enableK8sTokenAuth"
	if text(c.spec, "authOptions", "mode") != "token" {
		if c.hasKubernetesTokens() {
			faults = append(faults, c.fault(tokens, "true", "needs authOptions.mode: token"))
		}
		return faults
	}
	least := "2.52.0"
	if c.hasKubernetesTokens() {
		least = "2.55.0"
		if secret := text(c.spec, "authOptions", "secretName"); secret != "" {
			faults = append(faults, c.fault("authOptions.secretName", secret, "leave it out: enableK8sTokenAuth needs no Secret"))
		}
	}
	written := text(c.spec, "rayVersion")
	if ray, err := version.ParseGeneric(written); err != nil || ray.LessThan(version.MustParseGeneric(least)) {
		faults = append(faults, c.fault("rayVersion", written, "must be the version of Ray in the image, at least "+least+": authOptions need it"))
	}
	return faults
}
