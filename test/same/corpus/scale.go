// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/test/same/kubelet"
)

// most is how many pods of a template, or groups of pods, an object may have.
var most = map[string]int64{"replicas": 3, "minReplicas": 3, "maxReplicas": 4, "parallelism": 3, "completions": 4, "size": 4, "numOfHosts": 3}

// Scale makes a sample small and independent of everything that is not in it:
//
//   - there are at most as many pods as most says;
//   - each container requests 10m CPU and 64Mi memory, and a GPU if it requested a device;
//   - pods go to any node, and may be of the namespace's service account;
//   - images do not matter; volumes are empty if they were claims, and no claims are made;
//   - pods of work that ends run for 8 seconds; others run until they are deleted;
//   - the object waits for no queue of Kueue, and is not suspended.
func Scale(o *unstructured.Unstructured) {
	if o.GetName() == "" {
		o.SetName(strings.TrimSuffix(o.GetGenerateName(), "-"))
		o.SetGenerateName("")
	}
	o.SetNamespace("")
	labels := o.GetLabels()
	delete(labels, "kueue.x-k8s.io/queue-name")
	o.SetLabels(labels)
	spec, _ := o.Object["spec"].(map[string]any)
	delete(spec, "suspend")
	if o.GetKind() == "Pod" {
		scalePod(o.Object, false)
		return
	}
	scale(spec, slices.Contains([]string{"PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob"}, o.GetKind()))
}

// scale changes everything below a value. The Kubeflow kinds say beside a template whether its pods are started again.
func scale(value any, ends bool) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			scale(item, ends)
		}
	case map[string]any:
		if isTemplate(v) {
			scalePod(v, ends)
			return
		}
		withoutClaims(v)
		for field, below := range v {
			if limit, known := most[field]; known {
				if n, ok := below.(int64); ok {
					v[field] = min(n, limit)
				}
			}
			scale(below, ends)
		}
	}
}

func isTemplate(fields map[string]any) bool {
	spec, _ := fields["spec"].(map[string]any)
	return spec["containers"] != nil
}

// scalePod changes a pod or a pod template.
func scalePod(pod map[string]any, ends bool) {
	spec, _ := pod["spec"].(map[string]any)
	for _, field := range []string{"nodeSelector", "affinity", "tolerations", "serviceAccountName", "serviceAccount", "runtimeClassName", "schedulerName", "priorityClassName", "resourceClaims", "imagePullSecrets", "topologySpreadConstraints"} {
		delete(spec, field)
	}
	for _, field := range []string{"containers", "initContainers"} {
		containers, _ := spec[field].([]any)
		for _, c := range containers {
			scaleContainer(c)
		}
	}
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		emptyVolume(v)
	}
	play := "start=2s ready=1s"
	if policy, _ := spec["restartPolicy"].(string); ends || policy == "Never" || policy == "OnFailure" {
		play += " run=8s"
	}
	below(below(pod, "metadata"), "annotations")[kubelet.PlayAnnotation] = play
}

// below is an object in a field, which is made if there is none.
func below(fields map[string]any, name string) map[string]any {
	if object, ok := fields[name].(map[string]any); ok {
		return object
	}
	object := map[string]any{}
	fields[name] = object
	return object
}

// withoutClaims gives pods empty volumes instead of those of claims that would be made for them.
func withoutClaims(spec map[string]any) {
	claims, _ := spec["volumeClaimTemplates"].([]any)
	template, _ := spec["template"].(map[string]any)
	if len(claims) == 0 || template == nil {
		return
	}
	delete(spec, "volumeClaimTemplates")
	pod := below(template, "spec")
	volumes, _ := pod["volumes"].([]any)
	for _, claim := range claims {
		name, _, _ := unstructured.NestedString(claim.(map[string]any), "metadata", "name")
		// A claim takes the place of a volume of its name.
		volumes = slices.DeleteFunc(volumes, func(v any) bool { return v.(map[string]any)["name"] == name })
		volumes = append(volumes, map[string]any{"name": name, "emptyDir": map[string]any{}})
	}
	pod["volumes"] = volumes
}

func emptyVolume(value any) {
	volume, _ := value.(map[string]any)
	if volume["persistentVolumeClaim"] == nil && volume["ephemeral"] == nil {
		return
	}
	name := volume["name"]
	clear(volume)
	volume["name"], volume["emptyDir"] = name, map[string]any{}
}

func scaleContainer(value any) {
	container, _ := value.(map[string]any)
	amounts := func() map[string]any { return map[string]any{"cpu": "10m", "memory": "64Mi"} }
	requests, limits := amounts(), amounts()
	if hasDevice(container) {
		requests["nvidia.com/gpu"], limits["nvidia.com/gpu"] = "1", "1"
	}
	container["image"] = "simulated"
	container["resources"] = map[string]any{"requests": requests, "limits": limits}
}

func hasDevice(container map[string]any) bool {
	limits, _, _ := unstructured.NestedMap(container, "resources", "limits")
	for name := range limits {
		if strings.Contains(name, "/") {
			return true
		}
	}
	return false
}
