// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

var resource = schema.GroupResource{Resource: "appwrappers"}

func TestWhatFailsIsASentenceThatSaysWhatToDo(t *testing.T) {
	for want, err := range map[string]error{
		"you may not list appwrappers in namespace blue: ask an administrator for a role with this right":                        apierrors.NewForbidden(resource, "", errors.New(`User "m" cannot list`)),
		"cannot list appwrappers in namespace blue: appwrappers is forbidden: a policy denied the request":                       apierrors.NewForbidden(resource, "", errors.New("a policy denied the\n\x1b\u009brequest")),
		"the cluster does not serve appwrappers: ask an administrator whether the platform is installed":                         fmt.Errorf("wrapped: %w", &meta.NoKindMatchError{}),
		"cannot list appwrappers in namespace blue: the cluster does not accept your credentials: log in again":                  apierrors.NewUnauthorized("no"),
		`cannot list appwrappers in namespace blue: check --kubeconfig and --context: Get "https://nowhere": connection refused`: &url.Error{Op: "Get", URL: "https://nowhere", Err: errors.New("connection refused")},
		`cannot list appwrappers in namespace blue: appwrappers "a" not found`:                                                   apierrors.NewNotFound(resource, "a"),
	} {
		got := clusterstate.Failed(err, clusterstate.Request{Verb: "list", Resource: "appwrappers", Namespace: "blue"})
		if got.Error() != want || !errors.Is(got, err) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
