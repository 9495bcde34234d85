// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

// none is a namespace that adds nothing to pods.
func none(context.Context, string, admissionrules.Decoded) (admissionrules.Surroundings, error) {
	return admissionrules.Surroundings{}, nil
}

// counting is a reader of a cluster with a LimitRange and a RuntimeClass, and the kinds that it was asked for.
func counting(t *testing.T, asked *[]string, fault error) client.Reader {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nodev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(
		&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: given.Namespace, Name: "limits"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: amounts}}}},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Overhead: &nodev1.Overhead{PodFixed: amounts}},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}},
	).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			*asked = append(*asked, "LimitRanges")
			return errors.Join(fault, c.List(ctx, list, options...))
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			*asked = append(*asked, key.Name)
			return errors.Join(fault, c.Get(ctx, key, into, options...))
		},
	}).Build()
}

func withPod(t *testing.T, pod string) *v1beta2.AppWrapper {
	t.Helper()
	aw := given.AppWrapper("a").With(given.Job("j", 1)).Build()
	aw.Spec.Components[0].Template.Raw = []byte(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": ` + pod + `}}}`)
	return aw
}

func TestWhatKueueWouldNotCountIsAddedToTheTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		pod   string
		asked []string
		extra string // of cpu
	}{
		"nothing of a pod that says what it requests": {
			pod: `{"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}}]}`},
		"nothing of a RuntimeClass without overhead": {
			pod: `{"containers": [{"name": "c"}], "runtimeClassName": "nvidia"}`, asked: []string{"nvidia"}},
		"nothing of a RuntimeClass that is not there": {
			pod: `{"containers": [{"name": "c"}], "runtimeClassName": "other"}`, asked: []string{"other"}},
		"the overhead of a RuntimeClass": {
			pod: `{"containers": [{"name": "c"}], "runtimeClassName": "kata"}`, asked: []string{"kata"}, extra: "100m"},
		"a limit, which a default would hide": {
			pod: `{"containers": [{"name": "c", "resources": {"limits": {"cpu": "64"}}}]}`, asked: []string{"LimitRanges"}, extra: "63900m"},
		"a side-car": {
			pod:   `{"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "8"}}}]}`,
			asked: []string{"LimitRanges"}, extra: "8"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			read := surroundingsFrom(counting(t, &asked, nil))
			aw := withPod(t, tc.pod)
			if err := (&defaulter{surroundings: read}).addExtras(t.Context(), given.Namespace, aw); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(asked, tc.asked) {
				t.Errorf("asked for %v, want %v", asked, tc.asked)
			}
			if extra := extraCPU(t, aw); extra != tc.extra {
				t.Errorf("added %q, want %q", extra, tc.extra)
			}
			v := &validator{surroundings: read}
			if problems := v.uncounted(t.Context(), admissionrules.Decode(aw)); len(problems) > 0 {
				t.Error(problems.ToAggregate())
			}
			if problems := v.uncounted(t.Context(), admissionrules.Decode(withPod(t, tc.pod))); (len(problems) > 0) != (tc.extra != "") {
				t.Errorf("without the extra: %v", problems.ToAggregate())
			}
		})
	}
}

func extraCPU(t *testing.T, aw *v1beta2.AppWrapper) string {
	t.Helper()
	var job struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(aw.Spec.Components[0].Template.Raw, &job); err != nil {
		t.Fatal(err)
	}
	containers := job.Spec.Template.Spec.Containers
	if len(containers) == 1 {
		return ""
	}
	return containers[1].Resources.Requests.Cpu().String()
}

// What could not be counted is not accepted as if it were nothing.
func TestPodsThatCannotBeCountedAreNotAccepted(t *testing.T) {
	var asked []string
	read := surroundingsFrom(counting(t, &asked, errors.New("no answer")))
	aw := withPod(t, `{"containers": [{"name": "c", "resources": {"limits": {"cpu": "64"}}}]}`)
	if err := (&defaulter{surroundings: read}).addExtras(t.Context(), given.Namespace, aw); err == nil || !strings.Contains(err.Error(), "cannot read the LimitRanges") {
		t.Error(err)
	}
	if problems := (&validator{surroundings: read}).uncounted(t.Context(), admissionrules.Decode(aw)); len(problems) != 1 {
		t.Error(problems)
	}
}

// A manifest that is applied again has no extra, and its author has not changed anything.
func TestAnExtraStaysWhenAManifestIsAppliedAgain(t *testing.T) {
	const pod = `{"containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "8"}}}]}`
	stored := withPod(t, pod)
	if err := admissionrules.AddExtras(stored, admissionrules.Surroundings{}); err != nil {
		t.Fatal(err)
	}
	v := &validator{limits: admissionrules.DefaultLimits, namespaces: team, review: (&grants{}).review}
	for name, tc := range map[string]struct {
		sent    string
		refused bool
	}{
		"the same manifest":    {pod, false},
		"another one":          {strings.Replace(pod, `"8"`, `"9"`, 1), true},
		"a larger container":   {strings.Replace(pod, `"i"}`, `"i", "resources": {"limits": {"cpu": "8"}}}`, 1), true},
		"a container the less": {strings.Replace(pod, `"initContainers"`, `"priority"`, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			sent := withPod(t, tc.sent)
			keepWhatWasWritten(stored, sent)
			response := admission.WithValidator(scheme(t), v).Handle(t.Context(), request(t, admissionv1.Update, stored, sent))
			if response.Allowed == tc.refused {
				t.Error(response.Result)
			}
			if same := string(sent.Spec.Components[0].Template.Raw) == string(stored.Spec.Components[0].Template.Raw); same == tc.refused {
				t.Errorf("sent %s", sent.Spec.Components[0].Template.Raw)
			}
		})
	}
}
