// SPDX-License-Identifier: Apache-2.0

package incumbent

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=f134c674.codeflare.dev,verbs=list

// leases finds a controller by the Lease that it renews in another namespace. Each
// AppWrapper controller that elects a leader has one of the same name; in our own
// namespace it is the one that we hold ourselves.
type leases struct {
	list func(context.Context) ([]coordinationv1.Lease, error)
	own  string
	now  func() time.Time
	seen map[types.NamespacedName]sighting
}

// sighting is when a Lease was renewed, by the clock of who holds it, and since when, by
// ours, we have seen it so. Nothing is concluded from two clocks.
type sighting struct {
	renewed, since time.Time
}

// longDead: clocks are not that far apart.
const longDead = time.Hour

// holder is who holds a Lease that has been renewed lately.
func (l *leases) holder(ctx context.Context) (string, error) {
	all, err := l.list(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot list the Leases of AppWrapper controllers: %w", err)
	}
	for i := range all {
		if lease := &all[i]; lease.Namespace != l.own && l.held(lease) {
			return fmt.Sprintf("%s, which holds the Lease %s in namespace %s", *lease.Spec.HolderIdentity, lease.Name, lease.Namespace), nil
		}
	}
	return "", nil
}

// held: who holds the Lease has not given it back and may yet renew it.
func (l *leases) held(lease *coordinationv1.Lease) bool {
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		return false
	}
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	now, renewed := l.now(), time.Time{}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	if now.Sub(renewed) > longDead {
		return false
	}
	last, before := l.seen[key]
	if !before || !last.renewed.Equal(renewed) {
		l.seen[key] = sighting{renewed: renewed, since: now}
		return true
	}
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 15)) * time.Second
	return now.Sub(last.since) <= duration
}

// listLeases asks for those of one name, in all namespaces. That is all that our role
// lets us list.
func listLeases(reader client.Reader, name string) func(context.Context) ([]coordinationv1.Lease, error) {
	return func(ctx context.Context) ([]coordinationv1.Lease, error) {
		found := &coordinationv1.LeaseList{}
		err := reader.List(ctx, found, client.MatchingFields{"metadata.name": name})
		return found.Items, err
	}
}
