// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"context"
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAClusterWithoutThePlatformIsRefusedInASentence(t *testing.T) {
	edit := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mlbatch-edit"}}
	unknown := func(kind string) error { return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}} }
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "AppWrapper"}, "probe", nil)
	dead := apierrors.NewInternalError(errors.New("failed calling webhook"))
	for name, c := range map[string]struct {
		api     error            // of every request
		user    bool             // not an administrator
		answers map[string]error // to the creation of a kind
		objects []client.Object
		want    string
	}{
		"all is there":                {nil, false, map[string]error{"AppWrapper": refused}, []client.Object{edit}, ""},
		"a cluster that is not there": {errors.New("connection refused"), false, nil, nil, "the cluster does not answer: connection refused"},
		"a user of the cluster":       {nil, true, nil, []client.Object{edit}, "the kubeconfig is of a user who may not do everything, and stories need a cluster administrator's"},
		"nothing is installed": {nil, false, map[string]error{"AppWrapper": unknown("AppWrapper"), "ClusterQueue": unknown("ClusterQueue")}, nil,
			"the platform is not installed there, for it has no kind AppWrapper, no kind ClusterQueue, no ClusterRole mlbatch-edit; install it first (docs/install.md)"},
		"Kueue is missing": {nil, false, map[string]error{"AppWrapper": refused, "ClusterQueue": unknown("ClusterQueue")}, []client.Object{edit},
			"the platform is not installed there, for it has no kind ClusterQueue; install it first (docs/install.md)"},
		"the controller does not run": {nil, false, map[string]error{"AppWrapper": dead}, []client.Object{edit},
			"the cluster knows the kind AppWrapper and cannot judge one, so see whether its controller runs: Internal error occurred: failed calling webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(c.objects...).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
					review, asks := object.(*authorizationv1.SelfSubjectAccessReview)
					if asks {
						review.Status.Allowed = !c.user
					} else if len(options) != 1 || options[0] != client.DryRunAll {
						t.Errorf("%s would be stored", object.GetName())
					}
					return errors.Join(c.api, c.answers[object.GetObjectKind().GroupVersionKind().Kind])
				},
			}).Build()
			err := Platform(t.Context(), api)
			if got := sentence(err); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func sentence(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
