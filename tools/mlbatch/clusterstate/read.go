// SPDX-License-Identifier: Apache-2.0

// Package clusterstate is the only reader of clusters: it lists objects in pages, at one revision if that matters, and
// says in one sentence what could not be read. Answers get what it has read, and no client.
package clusterstate

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Page is how many objects a list has at most in one answer.
const Page = 500

// List returns all objects of a kind, in pages. They are nil only if that fails.
func List[T any](ctx context.Context, c client.Reader, kind client.ObjectList, options ...client.ListOption) ([]T, error) {
	all := []T{}
	if err := Each(ctx, c, kind, func(o *T) { all = append(all, *o) }, options...); err != nil {
		return nil, err
	}
	return all, nil
}

// Some returns the objects of the first pages, and whether these are all.
func Some[T any](ctx context.Context, c client.Reader, kind client.ObjectList, pages int, options ...client.ListOption) (some []T, all bool, err error) {
	all, err = each(ctx, c, kind, pages, func(o *T) { some = append(some, *o) }, options...)
	return some, all, err
}

// Each calls keep with each object of a kind.
func Each[T any](ctx context.Context, c client.Reader, kind client.ObjectList, keep func(*T), options ...client.ListOption) error {
	_, err := each(ctx, c, kind, -1, keep, options...)
	return err
}

// each reads so many pages, or all. A page has a list of its own, because decoding into another page's would change
// its objects.
func each[T any](ctx context.Context, c client.Reader, kind client.ObjectList, pages int, keep func(*T), options ...client.ListOption) (all bool, err error) {
	next := ""
	for ; pages != 0; pages-- {
		page := kind.DeepCopyObject().(client.ObjectList)
		if err := c.List(ctx, page, append(options[:len(options):len(options)], client.Limit(Page), client.Continue(next))...); err != nil {
			return false, err
		}
		if err := meta.EachListItem(page, func(o runtime.Object) error { keep(any(o).(*T)); return nil }); err != nil {
			return false, err
		}
		if next = page.GetContinue(); next == "" {
			return true, nil
		}
	}
	return false, nil
}

// Moment reads what was stored at one revision, that of its first list.
type Moment struct {
	client.Client
	Revision string
}

// List reads a page. What continues a list has its revision, and may not have another.
func (m *Moment) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if m.Revision != "" && asked.Continue == "" {
		asked.Raw = &metav1.ListOptions{ResourceVersion: m.Revision, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	}
	if err := m.Client.List(ctx, list, asked); err != nil {
		return err
	}
	if m.Revision == "" {
		m.Revision = list.GetResourceVersion()
	}
	return nil
}

// NotEnded selects pods that have not ended.
func NotEnded() client.ListOption { return client.MatchingFieldsSelector{Selector: notEnded()} }

// OnNodes selects those of them that have a node.
func OnNodes() client.ListOption {
	return client.MatchingFieldsSelector{Selector: fields.AndSelectors(fields.OneTermNotEqualSelector("spec.nodeName", ""), notEnded())}
}

func notEnded() fields.Selector {
	return fields.AndSelectors(fields.OneTermNotEqualSelector("status.phase", "Succeeded"), fields.OneTermNotEqualSelector("status.phase", "Failed"))
}
