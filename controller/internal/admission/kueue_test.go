// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

const kueueUser = "system:serviceaccount:kueue-system:kueue-controller-manager"

func TestUsersOfServiceAccounts(t *testing.T) {
	want := sets.New("system:serviceaccount:mlbatch-system:k", "system:serviceaccount:kueue-system:m")
	if got := users([]string{"k", "kueue-system/m"}, "mlbatch-system"); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// onFlavor is what Kueue writes when it assigns a flavor of nodes.
func onFlavor(name string) v1beta2.AppWrapperPodSetInfo {
	return v1beta2.AppWrapperPodSetInfo{NodeSelector: map[string]string{"flavor": name}}
}

func TestOnlyKueueChangesPodSetInfos(t *testing.T) {
	manifest := given.AppWrapper("a").With(given.Job("j", 1), given.Job("k", 1)).Build()
	waiting := manifest
	admitted := given.AppWrapper("a").WithFinalizer().Unsuspended().
		With(given.Job("j", 1).Admitted(onFlavor("a100")), given.Job("k", 1).Admitted(onFlavor("h100"))).Build()
	failed := admitted.DeepCopy()
	failed.Status.Phase = v1beta2.AppWrapperResetting
	// Both ways to apply a manifest replace the whole list of components.
	applied := admitted.DeepCopy()
	applied.Spec.Components = manifest.Spec.Components
	elsewhere := given.AppWrapper("a").With(given.Job("j", 1).Admitted(onFlavor("free")), given.Job("k", 1)).Build()
	suspended := admitted.DeepCopy()
	suspended.Spec.Suspend = true
	partial := waiting.DeepCopy()
	partial.Spec.Components[0].PodSetInfos = admitted.Spec.Components[0].PodSetInfos
	started := elsewhere.DeepCopy()
	started.Spec.Suspend = false
	fewer := manifest.DeepCopy()
	fewer.Spec.Components = fewer.Spec.Components[:1]
	undeclared := given.AppWrapper("a").With(given.Component(replicaSet)).Build()
	declared := given.AppWrapper("a").With(given.Component(replicaSet).Declaring("template.spec.template", 1)).Build()
	otherwise := given.AppWrapper("a").With(given.Component(replicaSet).Declaring("template.spec.template", 2)).Build()
	former := given.AppWrapper("a").With(declaring(given.Component(rayCluster), 1, 2)).Build()
	counted := given.AppWrapper("a").With(declaring(given.Component(rayCluster), 1, 8)).Build()
	for name, tc := range map[string]struct {
		user         string
		stored, sent *v1beta2.AppWrapper
		want         *v1beta2.AppWrapper
	}{
		"the manifest is applied again while the job runs":     {"ada", admitted, applied, admitted},
		"the manifest is applied again before a retry":         {"ada", failed, applied, admitted},
		"the manifest is applied again while it waits":         {"ada", waiting, manifest, waiting},
		"the controller adds a finalizer":                      {"controller", waiting, given.AppWrapper("a").WithFinalizer().With(given.Job("j", 1), given.Job("k", 1)).Build(), waiting},
		"an author chooses other nodes":                        {"ada", admitted, elsewhere, admitted},
		"an author chooses nodes before Kueue does":            {"ada", waiting, elsewhere, waiting},
		"an author suspends the job":                           {"ada", admitted, suspended, admitted},
		"an author repairs one that waits with a part of them": {"ada", partial, manifest, waiting},
		"an author changes what one waits with":                {"ada", partial, elsewhere, partial},
		"somebody starts it on nodes, to be judged":            {"ada", waiting, started, started},
		"Kueue admits":   {kueueUser, waiting, admitted, admitted},
		"Kueue suspends": {kueueUser, admitted, waiting, waiting},
		"the manifest of a kind that Kueue does not know":     {"ada", declared, undeclared, declared},
		"the manifest of a kind that 1.2 counted otherwise":   {"ada", counted, former, counted},
		"the same, of an AppWrapper that 1.2 has stored":      {"ada", former, former, former},
		"an author declares other pod sets, to be refused":    {"ada", declared, otherwise, otherwise},
		"another number of components, which will be refused": {"ada", admitted, fewer, fewer},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, admissionv1.Update, tc.stored, tc.sent)
			r.UserInfo.Username = tc.user
			got, sent := tc.sent.DeepCopy(), tc.sent.DeepCopy()
			if err := newDefaulter(t).Default(admission.NewContextWithRequest(t.Context(), r), got); err != nil {
				t.Fatal(err)
			}
			sent.Spec.Components, sent.Finalizers = tc.want.Spec.Components, got.Finalizers
			if diff := cmp.Diff(sent, got); diff != "" {
				t.Errorf("stored (-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhoeverMayStartItDoesNotChooseItsNodes(t *testing.T) {
	waiting := given.AppWrapper("a").With(given.Job("j", 1)).Build()
	started := given.AppWrapper("a").Unsuspended().With(given.Job("j", 1).Admitted(onFlavor("a100"))).Build()
	d := newDefaulter(t)
	d.review = (&grants{allowed: "unsuspend appwrappers"}).review
	if err := d.Default(admission.NewContextWithRequest(t.Context(), request(t, admissionv1.Update, waiting, started)), started); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(waiting.Spec.Components, started.Spec.Components); diff != "" || started.Spec.Suspend {
		t.Errorf("suspend is %t, and of components (-want +got)\n%s", started.Spec.Suspend, diff)
	}
}

// rayCluster has a group of two replicas with four hosts each.
var rayCluster = map[string]any{
	"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"name": "r"},
	"spec": map[string]any{
		"headGroupSpec":    map[string]any{"template": map[string]any{}},
		"workerGroupSpecs": []any{map[string]any{"replicas": int64(2), "numOfHosts": int64(4), "template": map[string]any{}}},
	},
}

func declaring(c *given.ComponentBuilder, head, workers int32) *given.ComponentBuilder {
	return c.Declaring("template.spec.headGroupSpec.template", head).Declaring("template.spec.workerGroupSpecs[0].template", workers)
}

// replicaSet is of a kind that Kueue does not know.
var replicaSet = map[string]any{
	"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": map[string]any{"name": "r"},
	"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}}}},
}

func TestPodSetsThatKueueDoesNotFindAreDeclaredAtCreation(t *testing.T) {
	aw := given.AppWrapper("a").With(given.Component(replicaSet), given.Job("j", 1)).Build()
	r := request(t, admissionv1.Create, nil, aw)
	if err := newDefaulter(t).Default(admission.NewContextWithRequest(t.Context(), r), aw); err != nil {
		t.Fatal(err)
	}
	want := []v1beta2.AppWrapperPodSet{{Path: "template.spec.template", Replicas: new(int32(1))}}
	if diff := cmp.Diff(want, aw.Spec.Components[0].DeclaredPodSets); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if declared := aw.Spec.Components[1].DeclaredPodSets; declared != nil {
		t.Errorf("Kueue knows Jobs, but these pod sets were declared: %v", declared)
	}
}

func TestOnlyKueueCreatesWithPodSetInfos(t *testing.T) {
	for name, tc := range map[string]struct {
		user string
		want []v1beta2.AppWrapperPodSetInfo
	}{
		"an author does not": {"ada", nil},
		"Kueue may":          {kueueUser, []v1beta2.AppWrapperPodSetInfo{onFlavor("free")}},
	} {
		t.Run(name, func(t *testing.T) {
			aw := given.AppWrapper("a").With(given.Job("j", 1).Admitted(onFlavor("free")), given.Job("k", 1)).Build()
			r := request(t, admissionv1.Create, nil, aw)
			r.UserInfo.Username = tc.user
			if err := newDefaulter(t).Default(admission.NewContextWithRequest(t.Context(), r), aw); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, aw.Spec.Components[0].PodSetInfos); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func newDefaulter(t *testing.T) *defaulter {
	t.Helper()
	return &defaulter{queue: "default-queue", kueue: sets.New(kueueUser), review: (&grants{}).review, namespaces: plain, surroundings: none, decode: admission.NewDecoder(scheme(t)).DecodeRaw}
}

func TestTheMutatingWebhookOnlyPutsPodSetInfosBack(t *testing.T) {
	admitted := given.AppWrapper("a").Unsuspended().With(given.Job("j", 1).Admitted(onFlavor("a100"))).Build()
	elsewhere := given.AppWrapper("a").Unsuspended().With(given.Job("j", 1).Admitted(onFlavor("free"))).Build()
	none := given.AppWrapper("a").Unsuspended().With(given.Job("j", 1)).Build()
	for name, tc := range map[string]struct {
		stored, sent *v1beta2.AppWrapper
		want         string
	}{
		"what is missing is added":    {admitted, none, "add /spec/components/0/podSetInfos"},
		"what is new is removed":      {none, elsewhere, "remove /spec/components/0/podSetInfos"},
		"what is different is undone": {admitted, elsewhere, "replace /spec/components/0/podSetInfos/0/nodeSelector/flavor"},
		"what is the same stays":      {admitted, admitted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := admission.WithDefaulter(scheme(t), newDefaulter(t)).Handle(t.Context(), request(t, admissionv1.Update, tc.stored, tc.sent))
			if !response.Allowed {
				t.Fatal(response.Result)
			}
			var got []string
			for _, patch := range response.Patches {
				got = append(got, patch.Operation+" "+patch.Path)
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("patches %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheStartOfAnAppWrapperAddsTheFinalizer(t *testing.T) {
	waits := given.AppWrapper("a").With(given.Job("j", 1))
	runs := given.AppWrapper("a").Unsuspended().With(given.Job("j", 1))
	elsewhere := func(b *given.AppWrapperBuilder) *v1beta2.AppWrapper {
		aw := b.Build()
		aw.Spec.ManagedBy = ptr.To("example.com/other")
		return aw
	}
	deleted := func(b *given.AppWrapperBuilder) *v1beta2.AppWrapper { // the API server would refuse a finalizer
		aw := b.Build()
		aw.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		return aw
	}
	for name, tc := range map[string]struct {
		user         string
		stored, sent *v1beta2.AppWrapper
		want         bool
	}{
		"Kueue starts it":                   {kueueUser, waits.Build(), runs.Build(), true},
		"its author starts it":              {"ada", waits.Build(), runs.Build(), true},
		"Kueue leaves it suspended":         {kueueUser, waits.Build(), waits.Build(), false},
		"its author leaves it suspended":    {"ada", waits.Build(), waits.Build(), false},
		"Kueue stops it":                    {kueueUser, runs.Build(), waits.Build(), false},
		"it runs already":                   {"ada", runs.Build(), runs.Build(), false},
		"another controller will deploy it": {kueueUser, elsewhere(waits), elsewhere(runs), false},
		"it is deleted, and others keep it": {kueueUser, deleted(waits), deleted(runs), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, admissionv1.Update, tc.stored, tc.sent)
			r.UserInfo.Username = tc.user
			if err := newDefaulter(t).Default(admission.NewContextWithRequest(t.Context(), r), tc.sent); err != nil {
				t.Fatal(err)
			}
			if got := controllerutil.ContainsFinalizer(tc.sent, v1beta2.AppWrapperFinalizer); got != tc.want {
				t.Errorf("it has the finalizer: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOnlyKueueStartsWhatIsQueued(t *testing.T) {
	const queue = v1beta2.QueueNameLabel
	for name, tc := range map[string]struct {
		user          string
		before, after map[string]string // labels
		was, is       bool              // suspended
		flavor        string            // the node selector that the update sets
		grants        string
		manages       string // label of the namespaces that Kueue manages
		asked         int
		refused       string // the field that the error names
	}{
		"Kueue starts it":                                               {user: kueueUser, before: map[string]string{queue: "q"}, was: true},
		"an author may not start it":                                    {user: "ada", before: map[string]string{queue: "q"}, was: true, asked: 1, refused: "spec.suspend"},
		"nor by leaving the queue with it":                              {user: "ada", before: map[string]string{queue: "q"}, after: map[string]string{}, was: true, asked: 1, refused: "spec.suspend"},
		"nor by entering one with it":                                   {user: "ada", before: map[string]string{}, after: map[string]string{queue: "q"}, was: true, asked: 1, refused: "spec.suspend"},
		"whoever has the verb may":                                      {user: "ada", before: map[string]string{queue: "q"}, was: true, grants: "unsuspend appwrappers", asked: 1},
		"without a queue it is its author's":                            {user: "ada", was: true},
		"an author may suspend it":                                      {user: "ada", before: map[string]string{queue: "q"}, is: true},
		"a change beside it asks for nothing":                           {user: "ada", before: map[string]string{queue: "q"}, was: true, is: true},
		"one that runs may be changed":                                  {user: "ada", before: map[string]string{queue: "q"}},
		"an author may not take it out of the queue, to start it later": {user: "ada", before: map[string]string{queue: "q"}, after: map[string]string{}, was: true, is: true, asked: 1, refused: "metadata.labels[" + queue + "]"},
		"nor while it runs, to suspend and start it later":              {user: "ada", before: map[string]string{queue: "q"}, after: map[string]string{}, asked: 1, refused: "metadata.labels[" + queue + "]"},
		"whoever may start it may take it out":                          {user: "ada", before: map[string]string{queue: "q"}, after: map[string]string{}, was: true, is: true, grants: "unsuspend appwrappers", asked: 1},
		"Kueue may, too":                                                {user: kueueUser, before: map[string]string{queue: "q"}, after: map[string]string{}, was: true, is: true},
		"an author may move it to another queue":                        {user: "ada", before: map[string]string{queue: "q"}, after: map[string]string{queue: "r"}, was: true, is: true},
		"without a queue it waits where Kueue manages everything":       {user: "ada", was: true, manages: "team", asked: 1, refused: "spec.suspend"},
		"nodes are chosen by Kueue, queue or not":                       {user: "ada", was: true, flavor: "a100", asked: 1, refused: "spec.suspend"},
		"whoever has the verb chooses them, too":                        {user: "ada", was: true, flavor: "a100", grants: "unsuspend appwrappers", asked: 1},
		"and is its author's elsewhere":                                 {user: "ada", was: true, manages: "others"},
	} {
		t.Run(name, func(t *testing.T) {
			before := given.AppWrapper("a").With(given.Job("j", 1)).Build()
			before.Labels, before.Spec.Suspend = tc.before, tc.was
			after := before.DeepCopy()
			after.Spec.Suspend = tc.is
			if tc.flavor != "" {
				after.Spec.Components[0].PodSetInfos = []v1beta2.AppWrapperPodSetInfo{onFlavor(tc.flavor)}
			}
			if tc.after != nil {
				after.Labels = tc.after
			}
			asked := &grants{allowed: tc.grants}
			v := &validator{limits: admissionrules.DefaultLimits, kueue: sets.New(kueueUser), review: asked.review, namespaces: team, surroundings: none, managed: managing(t, tc.manages)}
			r := request(t, admissionv1.Update, before, after)
			r.UserInfo.Username = tc.user
			_, err := v.ValidateUpdate(admission.NewContextWithRequest(t.Context(), r), before, after)
			if (err != nil) != (tc.refused != "") || len(asked.asked) != tc.asked {
				t.Errorf("asked %q, error %v", asked.asked, err)
			}
			if err != nil && !strings.Contains(err.Error(), tc.refused+": Forbidden: only Kueue may start queued work") {
				t.Errorf("says: %v", err)
			}
		})
	}
}

// Its owner may be spoofed: that keeps Kueue from suspending it.
func TestNewWorkIsNotStartedByItsAuthor(t *testing.T) {
	for name, tc := range map[string]struct {
		user      string
		suspended bool
		grants    string
		manages   string // label of the namespaces that Kueue manages
		asked     int
		refused   bool
	}{
		"it waits":                        {user: "ada", suspended: true, manages: "team"},
		"an author may not start it":      {user: "ada", manages: "team", asked: 1, refused: true},
		"whoever has the verb may":        {user: "ada", manages: "team", grants: "unsuspend appwrappers", asked: 1},
		"Kueue may":                       {user: kueueUser, manages: "team"},
		"elsewhere it is its author's":    {user: "ada", manages: "others"},
		"as where Kueue manages no place": {user: "ada"},
	} {
		t.Run(name, func(t *testing.T) {
			aw := given.AppWrapper("a").With(given.Job("j", 1)).Build()
			aw.Spec.Suspend = tc.suspended
			asked := &grants{allowed: tc.grants}
			v := &validator{limits: admissionrules.DefaultLimits, kueue: sets.New(kueueUser), review: asked.review, namespaces: team, surroundings: none, managed: managing(t, tc.manages), own: &ownRights{}}
			r := request(t, admissionv1.Create, nil, aw)
			r.UserInfo.Username = tc.user
			_, err := v.ValidateCreate(admission.NewContextWithRequest(t.Context(), r), aw)
			refused := err != nil && strings.Contains(err.Error(), "spec.suspend: Forbidden: only Kueue may start queued work")
			if refused != tc.refused || (err != nil) != refused || len(asked.asked) != tc.asked {
				t.Errorf("asked %q, error %v", asked.asked, err)
			}
		})
	}
}

// managing returns the namespaces that Kueue manages by a label. All namespaces here have the
// label team.
func managing(t *testing.T, label string) *managed {
	t.Helper()
	if label == "" {
		return nil
	}
	m, err := newManaged(&metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func team(context.Context, string) namespace {
	return namespace{labels: map[string]string{"team": "true"}}
}

func TestANamespaceThatCannotBeReadIsManaged(t *testing.T) {
	if !managing(t, "others").waits(namespace{unread: errors.New("away")}) {
		t.Error("it can be started without an access review")
	}
}

func TestAReviewThatFailsStartsNothing(t *testing.T) {
	aw := given.AppWrapper("a").Build()
	problems := mayUnsuspend(t.Context(), (&grants{fails: true}).review, request(t, admissionv1.Update, aw, aw).UserInfo, aw, field.NewPath("spec", "suspend"))
	if len(problems) != 1 {
		t.Errorf("want one problem, got %v", problems)
	}
}
