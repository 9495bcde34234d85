// SPDX-License-Identifier: Apache-2.0

// Package reading lists objects in pages, and says in one sentence what could not be done on a cluster.
package reading

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Page is how many objects a list has at most in one answer.
const Page = 500

// Pages calls add with each page of a list. A page has a list of its own, because decoding into another page's
// would change its objects.
func Pages[L any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, c client.Reader, add func(P), options ...client.ListOption) error {
	for next := ""; ; {
		list := P(new(L))
		if err := c.List(ctx, list, append(options[:len(options):len(options)], client.Limit(Page), client.Continue(next))...); err != nil {
			return err
		}
		add(list)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// Deed is something that is done on a cluster, such as list appwrappers.
type Deed struct {
	Verb, Resource string
	// Namespace is empty for all namespaces, and for objects in none.
	Namespace string
}

func (d Deed) String() string {
	text := d.Verb + " " + d.Resource
	if d.Namespace != "" {
		text += " in namespace " + d.Namespace
	}
	return text
}

// Failed is the error of a deed in one sentence.
func Failed(err error, d Deed) error {
	var unknown *meta.NoKindMatchError
	var network *url.Error
	switch {
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), " denied "): // not by a webhook or a policy
		return fmt.Errorf("you may not %s: ask an administrator for a role with this right%w", d, hidden{err})
	case errors.As(err, &unknown), apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return fmt.Errorf("the cluster does not serve %s: ask an administrator whether the platform is installed%w", d.Resource, hidden{err})
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("cannot %s: the cluster does not accept your credentials: log in again%w", d, hidden{err})
	case errors.As(err, &network):
		return fmt.Errorf("cannot %s: check --kubeconfig and --context: %w", d, printing.OneLineError(err))
	}
	return fmt.Errorf("cannot %s: %w", d, printing.OneLineError(err))
}

// hidden is an error whose own words add nothing.
type hidden struct{ error }

func (hidden) Error() string { return "" }

func (e hidden) Unwrap() error { return e.error }
