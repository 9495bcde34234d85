// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// everyVerb has the verbs to check for each resource; wrap and the last three are our own.
var everyVerb = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "wrap", "bind", "escalate", "impersonate", "control", "unsuspend", "attribute",
}

const (
	makes = "get list watch create update patch delete" // including changes and deletion
	ends  = "get list watch delete"
	wraps = ends + " wrap" // it can be created only inside an AppWrapper
	reads = "get list watch"
)

// rights are the permissions of a team's member in the team's namespace, and in no other. Verbs
// that are not listed must be denied.
var rights = []struct{ group, resource, verbs string }{
	{"workload.codeflare.dev", "appwrappers", makes},
	{"workload.codeflare.dev", "appwrappers/status", ""},
	{"workload.codeflare.dev", "appwrappers/finalizers", ""},
	{"codeflare.dev", "runs", makes},
	{"codeflare.dev", "runs/status", ""},
	{"codeflare.dev", "applications", makes},
	{"codeflare.dev", "datasets", makes},
	{"kubeflow.org", "pytorchjobs", makes},
	{"kubeflow.org", "pytorchjobs/status", ""},
	{"kubeflow.org", "tfjobs", wraps},
	{"kubeflow.org", "xgboostjobs", wraps},
	{"kubeflow.org", "paddlejobs", wraps},
	{"kubeflow.org", "jaxjobs", wraps},
	{"kubeflow.org", "mpijobs", wraps},
	{"ray.io", "rayjobs", makes},
	{"ray.io", "rayclusters", makes},
	{"ray.io", "rayservices", wraps},
	{"batch", "jobs", wraps},
	{"batch", "cronjobs", ""},
	{"apps", "deployments", wraps},
	{"apps", "deployments/scale", ""},
	{"apps", "statefulsets", wraps},
	{"apps", "replicasets", wraps},
	{"apps", "daemonsets", ""},
	{"jobset.x-k8s.io", "jobsets", wraps},
	{"leaderworkerset.x-k8s.io", "leaderworkersets", wraps},
	{"scheduling.x-k8s.io", "podgroups", makes},
	{"", "services", makes},
	{"", "secrets", makes},
	{"", "configmaps", makes},
	{"", "persistentvolumeclaims", makes},
	{"", "pods", wraps},
	{"", "pods/log", "get"},
	{"", "pods/exec", "create"},
	{"", "pods/portforward", "create"},
	{"", "pods/attach", ""},
	{"", "pods/binding", ""},
	{"", "pods/eviction", ""},
	{"", "pods/ephemeralcontainers", ""},
	{"", "serviceaccounts", "wrap"},
	{"", "serviceaccounts/token", ""},
	{"", "replicationcontrollers", wraps}, // an extra kind of this platform, see testdata/platform.yaml
	{"", "podtemplates", ""},
	{"", "events", reads},
	{"events.k8s.io", "events", reads},
	{"", "namespaces", "get"},
	{"", "resourcequotas", reads},
	{"", "limitranges", reads},
	{"metrics.k8s.io", "pods", "get list"},
	{"networking.k8s.io", "networkpolicies", ""},
	{"networking.k8s.io", "ingresses", ""},
	{"rbac.authorization.k8s.io", "roles", ""},
	{"rbac.authorization.k8s.io", "rolebindings", ""},
	{"coordination.k8s.io", "leases", ""},
	{"kueue.x-k8s.io", "localqueues", reads},
	{"kueue.x-k8s.io", "workloads", reads},
	{"kueue.x-k8s.io", "workloads/status", ""},
	{"visibility.kueue.x-k8s.io", "localqueues/pendingworkloads", "get"},
	{"admissionregistration.k8s.io", "validatingwebhookconfigurations", ""},
	{"apiextensions.k8s.io", "customresourcedefinitions", ""},
}

// clusterRights are the permissions of a team's member on cluster-scoped resources.
var clusterRights = []struct{ group, resource, verbs string }{
	{"kueue.x-k8s.io", "clusterqueues", reads},
	{"visibility.kueue.x-k8s.io", "clusterqueues/pendingworkloads", ""},
	{"kueue.x-k8s.io", "cohorts", reads},
	{"kueue.x-k8s.io", "resourceflavors", reads},
	{"kueue.x-k8s.io", "topologies", reads},
	{"kueue.x-k8s.io", "admissionchecks", reads},
	{"kueue.x-k8s.io", "workloadpriorityclasses", reads},
	{"scheduling.k8s.io", "priorityclasses", reads},
	{"codeflare.dev", "runsizeconfigurations", reads},
	{"", "nodes", ""},
	{"", "persistentvolumes", ""},
	{"rbac.authorization.k8s.io", "clusterroles", ""},
	{"rbac.authorization.k8s.io", "clusterrolebindings", ""},
}

// rightsOfEditors are what docs/security.md says of Kubernetes' own roles admin and edit.
var rightsOfEditors = []struct{ group, resource, may, mayNot string }{
	{"", "pods", "create", "wrap"},
	{"", "secrets", "get", "wrap"},
	{"apps", "deployments", "create", "wrap"},
	{"apps", "deployments/scale", "update", ""},
	{"batch", "jobs", "create", "wrap"},
	{"workload.codeflare.dev", "appwrappers", "", "control"},
	{"workload.codeflare.dev", "appwrappers", "", "unsuspend"},
	{"kueue.x-k8s.io", "workloads/status", "", "update"},
}

// bind gives somebody a role in the story's namespace.
func (s *story) bind(ctx context.Context, role, user string) {
	s.t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := s.admin.Create(ctx, binding); err != nil {
		s.t.Fatal(err)
	}
	s.created = append(s.created, binding)
}

// asked is a user whose permissions the API server is asked about.
type asked struct {
	user, namespace string
	groups          []string
}

func TestMembersMayDoWhatTheirRoleSaysInTheirNamespaceOnly(t *testing.T) {
	everybody := []string{"system:authenticated"}
	feature := features.New("the rights of members")
	feature.Assess("a member, in the team's namespace", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-applied", "amy", needs.Pods)
		for _, row := range rights {
			for _, verb := range everyVerb {
				want := slices.Contains(strings.Fields(row.verbs), verb)
				if got := allowed(ctx, t, s.api, asked{"amy", "e2e-applied", everybody}, verb, row.group, row.resource); got != want {
					t.Errorf("%s %s of %q: %t, want %t", verb, row.resource, row.group, got, want)
				}
			}
		}
		return ctx
	})
	feature.Assess("a member, in no namespace", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-applied", "amy", needs.Pods)
		for _, row := range clusterRights {
			for _, verb := range everyVerb {
				want := slices.Contains(strings.Fields(row.verbs), verb)
				if got := allowed(ctx, t, s.api, asked{"amy", "", everybody}, verb, row.group, row.resource); got != want {
					t.Errorf("%s %s of %q: %t, want %t", verb, row.resource, row.group, got, want)
				}
			}
		}
		return ctx
	})
	feature.Assess("somebody with Kubernetes' own role, in the team's namespace", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-applied", "amy", needs.Pods)
		for _, role := range []string{"admin", "edit"} {
			who := asked{"e2e-" + role, "e2e-applied", everybody}
			s.bind(ctx, role, who.user)
			s.until(ctx, "the binding has an effect", func(ctx context.Context) (string, error) {
				if !allowed(ctx, t, s.api, who, "create", "", "pods") {
					return "it has none", nil
				}
				return "", nil
			})
			for _, row := range rightsOfEditors {
				for verb, want := range map[string]bool{row.may: true, row.mayNot: false} {
					if verb != "" && allowed(ctx, t, s.api, who, verb, row.group, row.resource) != want {
						t.Errorf("%s %s of %q: %t, want %t", verb, row.resource, row.group, !want, want)
					}
				}
			}
		}
		return ctx
	})
	for name, who := range map[string]asked{
		"a member, in another team's namespace": {"amy", "e2e-blue", everybody},
		"a member, in the platform's namespace": {"amy", "mlbatch-system", everybody},
		"a member, in all namespaces":           {"amy", "", everybody},
		"a stranger, in the team's namespace":   {"steve", "e2e-applied", everybody},
		"the team's pods, in its namespace": {
			"system:serviceaccount:e2e-applied:default", "e2e-applied",
			[]string{"system:serviceaccounts", "system:serviceaccounts:e2e-applied", "system:authenticated"},
		},
	} {
		feature.Assess(name, func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			s := tell(t, cfg, "e2e-applied", "amy", needs.Pods)
			for _, row := range rights {
				for _, verb := range strings.Fields(row.verbs) {
					if allowed(ctx, t, s.api, who, verb, row.group, row.resource) {
						t.Errorf("may %s %s of %q", verb, row.resource, row.group)
					}
				}
			}
			return ctx
		})
	}
	testenv.Test(t, feature.Feature())
}

// allowed asks the API server's own authorizer.
func allowed(ctx context.Context, t *testing.T, api kubernetes.Interface, who asked, verb, group, resource string) bool {
	t.Helper()
	resource, sub, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.user, Groups: who.groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: who.namespace, Verb: verb, Group: group, Version: "*", Resource: resource, Subresource: sub,
		},
	}}
	review, err := api.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("cannot ask who may %s %s: %v", verb, resource, err)
	}
	return review.Status.Allowed
}
