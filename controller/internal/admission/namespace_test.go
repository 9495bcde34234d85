// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/config"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestAQueueWhereKueueDoesNotLookIsAWarning(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"mlbatch-team-namespace": "true"}}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		queue    map[string]string
		labels   map[string]string
		unread   error
		want     string
	}{
		"a queue in another namespace":        {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, want: `Kueue does not manage namespace "team-a"`},
		"a queue in a namespace of a team":    {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, labels: map[string]string{"mlbatch-team-namespace": "true"}},
		"no queue":                            {selector: selector},
		"an empty queue":                      {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: ""}},
		"nobody said where Kueue looks":       {queue: map[string]string{v1beta2.QueueNameLabel: "q"}},
		"a namespace that nobody can look at": {selector: selector, queue: map[string]string{v1beta2.QueueNameLabel: "q"}, unread: errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			managed, err := newManaged(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			read := func(context.Context, string) namespace { return namespace{labels: tc.labels, unread: tc.unread} }
			aw := given.AppWrapper("a").With(given.Job("j", 1)).Build()
			aw.Labels = tc.queue
			v := &validator{limits: admissionrules.DefaultLimits, namespaces: read, surroundings: none, managed: managed, own: &ownRights{resourceOf: mapper().RESTMapping}}
			response := admission.WithValidator(scheme(t), v).Handle(t.Context(), request(t, admissionv1.Create, nil, aw))
			if !response.Allowed {
				t.Fatal(response.Result)
			}
			if said := strings.Join(response.Warnings, "\n"); !strings.HasPrefix(said, tc.want) || (said == "") != (tc.want == "") {
				t.Errorf("warns %q, want %q", said, tc.want)
			}
		})
	}
}

// What only the pods would tell otherwise, once the AppWrapper holds quota.
func TestWhatTheNamespaceRefusesIsRefusedOnCreate(t *testing.T) {
	baseline := namespace{labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"}}
	const exposed = "spec.components[0].template.spec.template: "
	for name, tc := range map[string]struct {
		found                  namespace
		privileged             bool
		managedBy              string
		wantRefusal, wantWarns string
	}{
		"root on the node is refused":                        {found: baseline, privileged: true, wantRefusal: exposed + "Forbidden: the namespace enforces the Pod Security level baseline"},
		"other pods are a warning":                           {found: baseline, wantWarns: exposed + "these pods do not meet the Pod Security level restricted: "},
		"what another controller deploys is not judged here": {found: baseline, privileged: true, managedBy: "kueue.x-k8s.io/multikueue"},
		"elsewhere anything goes":                            {privileged: true},
		"a namespace that nobody can read does":              {found: namespace{labels: baseline.labels, unread: errors.New("away")}, privileged: true},
	} {
		t.Run(name, func(t *testing.T) {
			aw := given.AppWrapper("a").With(given.Job("j", 1)).Build()
			if tc.privileged {
				raw := &aw.Spec.Components[0].Template.Raw
				*raw = bytes.Replace(*raw, []byte(`"containers":`), []byte(`"hostPID":true,"containers":`), 1)
			}
			if tc.managedBy != "" {
				aw.Spec.ManagedBy = &tc.managedBy
			}
			reads := 0
			read := func(context.Context, string) namespace { reads++; return tc.found }
			managed := managing(t, "team")
			v := &validator{limits: admissionrules.DefaultLimits, namespaces: read, surroundings: none, managed: managed, kueue: sets.New("ada"), own: &ownRights{resourceOf: mapper().RESTMapping}}
			response := admission.WithValidator(scheme(t), v).Handle(t.Context(), request(t, admissionv1.Create, nil, aw))
			if response.Allowed != (tc.wantRefusal == "") || (!response.Allowed && !strings.Contains(response.Result.Message, tc.wantRefusal)) {
				t.Errorf("allowed %t: %v", response.Allowed, response.Result)
			}
			if said := strings.Join(response.Warnings, "\n"); !strings.HasPrefix(said, tc.wantWarns) || (said == "") != (tc.wantWarns == "") {
				t.Errorf("warns %q, want %q", said, tc.wantWarns)
			}
			if reads != 1 {
				t.Errorf("the namespace is read %d times", reads)
			}
		})
	}
}

// The taints by which the health of nodes is judged are no secret of a team's.
func TestTaintsOfNodeHealthMayBeTolerated(t *testing.T) {
	team := namespace{labels: map[string]string{"mlbatch-team-namespace": "true"}, annotations: map[string]string{admissionrules.TolerationsAnnotation: ""}}
	c, _, err := config.Parse([]byte("appwrapper: {nodeHealth: {taints: [{key: example.com/broken, resources: ['*'], effect: NoExecute}, {key: example.com/fan, value: slow, resources: ['*'], effect: NoExecute}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	for toleration, refused := range map[corev1.Toleration]bool{
		{Key: "example.com/broken", Operator: corev1.TolerationOpExists}: false,
		{Key: "example.com/fan", Value: "slow"}:                          false,
		{Key: "example.com/fan", Operator: corev1.TolerationOpExists}:    true,
		{Key: "example.com/other", Operator: corev1.TolerationOpExists}:  true,
	} {
		pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{toleration}}}
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		aw := &v1beta2.AppWrapper{Spec: v1beta2.AppWrapperSpec{Components: []v1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}}}}
		decoded := admissionrules.Decode(aw)
		if problems, _ := team.check(decoded, config.Policies{Placement: true}, c.AppWrapper.NodeHealth.ToleratedTaints()); (len(problems) > 0) != refused {
			t.Errorf("%v: got %v", toleration, problems)
		}
	}
}
