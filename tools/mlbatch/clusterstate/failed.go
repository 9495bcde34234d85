// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Request is something that is done on a cluster, such as list appwrappers.
type Request struct {
	Verb, Resource string
	// Namespace is empty for all namespaces, and for objects in none.
	Namespace string
}

func (r Request) String() string {
	text := r.Verb + " " + r.Resource
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}

// Failed is the error of a request in one sentence.
func Failed(err error, r Request) error {
	var unknown *meta.NoKindMatchError
	var network *url.Error
	switch {
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), " denied "): // not by a webhook or a policy
		return fmt.Errorf("you may not %s: ask an administrator for a role with this right%w", r, hidden{err})
	case errors.As(err, &unknown), apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return fmt.Errorf("the cluster does not serve %s: ask an administrator whether the platform is installed%w", r.Resource, hidden{err})
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("cannot %s: the cluster does not accept your credentials: log in again%w", r, hidden{err})
	case errors.As(err, &network):
		return fmt.Errorf("cannot %s: check --kubeconfig and --context: %w", r, printing.OneLineError(err))
	}
	return fmt.Errorf("cannot %s: %w", r, printing.OneLineError(err))
}

// hidden is an error whose own words add nothing.
type hidden struct{ error }

func (hidden) Error() string { return "" }

func (e hidden) Unwrap() error { return e.error }
