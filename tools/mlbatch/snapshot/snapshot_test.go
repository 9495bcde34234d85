// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
	"github.com/mlbatch/mlbatch/tools/mlbatch/snapshot"
)

// server is an API server that pages every list: one object a page.
type server struct {
	client.Client
	t        *testing.T
	listed   []string // resources
	denied   []string
	unserved string // a kind
	asked    []metav1.ListOptions
}

func serve(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), networkingv1.AddToScheme(scheme), workload.AddToScheme(scheme), kueue.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, meta.RESTScopeNamespace)
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJobList"}, &metav1.PartialObjectMetadataList{})
	s.Client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{List: s.list}).Build()
	return s
}

func (s *server) list(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	kind, err := c.GroupVersionKindFor(list)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil || kind.Kind == s.unserved {
		return errors.Join(err, &meta.NoKindMatchError{GroupKind: kind.GroupKind()})
	}
	resource := mapping.Resource.GroupResource()
	if slices.Contains(s.denied, resource.String()) {
		return apierrors.NewForbidden(resource, "", errors.New("no"))
	}
	asked := (&client.ListOptions{}).ApplyOptions(options).AsListOptions()
	s.asked = append(s.asked, *asked)
	if !slices.Contains(s.listed, resource.String()) {
		s.listed = append(s.listed, resource.String())
	}
	if err := c.List(ctx, list); err != nil {
		return err
	}
	return s.page(list, asked.Continue)
}

// page leaves one object, the one after that in the token.
func (s *server) page(list client.ObjectList, token string) error {
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	at := len(token)
	list.SetResourceVersion("7")
	if at+1 < len(all) {
		list.SetContinue(strings.Repeat("x", at+1))
	}
	return meta.SetList(list, all[min(at, len(all)):min(at+1, len(all))])
}

func namespace(name, team string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{quota.TeamLabel: team}}}
}

func pod(namespace, name, kind string) client.Object {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if group, kind, named := strings.Cut(kind, " "); named {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: "train", UID: "train", Controller: new(true)}}
	}
	return p
}

func pytorchjob() client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"})
	o.Namespace, o.Name, o.UID = "blue", "train", "train"
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: workload.GroupVersion.String(), Kind: workload.AppWrapperKind, Name: "train", UID: "aw", Controller: new(true)}}
	return o
}

var teams = []client.Object{namespace("blue", "true"), namespace("red", "true"), namespace("other", "false")}

// An empty list is one, too.
func TestAMomentHasWhatTeamsTolerate(t *testing.T) {
	listing := namespace("blue", "true")
	listing.SetAnnotations(map[string]string{admissionrules.TolerationsAnnotation: "a/b,c=d"})
	empty := namespace("red", "true")
	empty.SetAnnotations(map[string]string{admissionrules.TolerationsAnnotation: ""})
	m, err := snapshot.Read(t.Context(), serve(t, listing, empty, namespace("green", "true")), time.Unix(1, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"blue": {"a/b", "c=d"}, "red": {""}}, m.Tolerations); diff != "" {
		t.Error(diff)
	}
}

func TestAMomentHasEveryPageOfOneRevision(t *testing.T) {
	s := serve(t, append(teams, pod("blue", "a", "kubeflow.org/v1 PyTorchJob"), pod("red", "b", ""), pod("other", "c", ""), pytorchjob())...)
	now := time.Unix(1, 0)
	m, err := snapshot.Read(t.Context(), s, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range m.Pods {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" || m.Revision != "7" || m.Time != now {
		t.Errorf("got revision %s of %s: %s", m.Revision, m.Time, diff)
	}
	if len(m.Owners) != 1 || m.Owners[0].Kind != "PyTorchJob" || m.Owners[0].UID != "train" {
		t.Errorf("the owners are %v", m.Owners)
	}
	for i, o := range s.asked {
		exact := o.ResourceVersion == "7" && o.ResourceVersionMatch == metav1.ResourceVersionMatchExact
		if o.Limit == 0 || exact != (i > 0 && o.Continue == "") {
			t.Errorf("request %d is %+v", i, o)
		}
	}
}

func TestOnlyTheNamedNamespacesAreRead(t *testing.T) {
	s := serve(t, append(teams, pod("blue", "a", ""), pod("other", "c", ""))...)
	m, err := snapshot.Read(t.Context(), s, time.Time{}, []string{"other"})
	if err != nil || len(m.Pods) != 1 || m.Pods[0].Name != "c" {
		t.Errorf("got %v, %v", m.Pods, err)
	}
}

func TestWhatCannotBeReadIsASentence(t *testing.T) {
	for name, row := range map[string]struct {
		server *server
		only   []string
		want   string
	}{
		"two kinds that the user may not list": {
			server: &server{denied: []string{"nodes", "workloads.kueue.x-k8s.io"}},
			want:   "you may not list workloads.kueue.x-k8s.io, nodes: bind the ClusterRole mlbatch-audit to yourself",
		},
		"namespaces, too":         {server: &server{denied: []string{"namespaces"}}, want: "you may not list namespaces: bind the ClusterRole mlbatch-audit to yourself"},
		"a namespace is misspelt": {server: &server{}, only: []string{"blue", "rde"}, want: "there is no namespace rde: check --namespace"},
		"a cluster without Kueue": {server: &server{unserved: "Workload"}, want: "the platform is not installed on this cluster: check --context: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, teams...)
			s.denied, s.unserved = row.server.denied, row.server.unserved
			_, err := snapshot.Read(t.Context(), s, time.Time{}, row.only)
			if err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
	s := serve(t, namespace("other", "false"))
	if _, err := snapshot.Read(t.Context(), s, time.Time{}, nil); err == nil || err.Error() != "no namespace has the label mlbatch-team-namespace=true: name those to audit with --namespace" {
		t.Errorf("got %v", err)
	}
}

// Anybody can name an owner of a kind that an auditor may not list.
func TestAnOwnerThatCannotBeReadDoesNotBlind(t *testing.T) {
	s := serve(t, append(teams, pod("blue", "a", "v1 Secret"), pod("blue", "b", "example.com/v1 Unknown"))...)
	s.denied = []string{"secrets"}
	m, err := snapshot.Read(t.Context(), s, time.Time{}, nil)
	if diff := cmp.Diff(map[string]string{"Secret": "you may not list secrets"}, m.Unread); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestResourcesAreWhatIsRead(t *testing.T) {
	s := serve(t, teams...)
	if _, err := snapshot.Read(t.Context(), s, time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range snapshot.Resources {
		want = append(want, r.String())
	}
	slices.Sort(want)
	slices.Sort(s.listed)
	if diff := cmp.Diff(want, s.listed); diff != "" {
		t.Error(diff)
	}
}
