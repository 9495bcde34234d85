// SPDX-License-Identifier: Apache-2.0

package othercontroller

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

// waits is an annotation of a Lease. It names a holder that is not active but waits for
// another controller; it says nothing about the next holder. Only our controllers write it.
const waits = "workload.codeflare.dev/waits"

// leases finds a controller by the Lease that it renews. Each AppWrapper controller that
// elects a leader has one of the same name in its namespace, and claims the work by holding
// it. If several of ours see each other's claims, all but the first, by the names of their
// namespaces, withdraw them, and claim again when they see none. Each looks again after it
// has claimed, so two are never active; the first keeps its claim, so one is.
type leases struct {
	list func(context.Context) ([]coordinationv1.Lease, error)
	// annotate writes waits; nil removes it.
	annotate func(ctx context.Context, lease *coordinationv1.Lease, holder *string) error
	own      string
	// elects: the Lease in the controller's own namespace is its own.
	elects bool
	now    func() time.Time
	seen   map[types.NamespacedName]sighting
}

// sighting is when a Lease was renewed, by its holder's clock, and since when it has been seen
// so, by ours. The two clocks are never compared.
type sighting struct {
	renewed, since time.Time
}

// view is the result of one look at the Leases.
type view struct {
	// own is the Lease that this controller holds.
	own *coordinationv1.Lease
	// claim is a Lease of another controller; first is one whose namespace sorts before ours.
	claim, first *coordinationv1.Lease
	// waiting are the namespaces of ours that wait.
	waiting map[string]bool
}

// other names a controller that claims the work.
func (v view) other() string {
	if v.claim == nil {
		return ""
	}
	return fmt.Sprintf("%s, which holds the Lease %s in namespace %s", *v.claim.Spec.HolderIdentity, v.claim.Name, v.claim.Namespace)
}

// longDead is longer than clocks differ.
const longDead = time.Hour

// longestLease is longer than any controller's Lease lasts. Kubernetes' own role edit allows writing
// Leases, and one of a hundred years would keep this controller from its work.
const longestLease = 5 * time.Minute

// giveWay withdraws our claim if another controller comes first, or has no Lease and so cannot
// withdraw its own. If there is no other, it claims, and looks again.
func (l *leases) giveWay(ctx context.Context, v view, served bool) (view, error) {
	switch {
	case !l.elects:
		return v, nil
	case v.own == nil:
		return v, fmt.Errorf("cannot find this controller's own Lease in namespace %s", l.own)
	case (served || v.first != nil) && !isWaiting(v.own):
		return v, l.annotate(ctx, v.own, v.own.Spec.HolderIdentity)
	case !served && v.claim == nil && isWaiting(v.own):
		if err := l.annotate(ctx, v.own, nil); err != nil {
			return v, err
		}
		return l.look(ctx)
	}
	return v, nil
}

// look finds the Leases that have been renewed lately.
func (l *leases) look(ctx context.Context) (view, error) {
	all, err := l.list(ctx)
	if err != nil {
		return view{}, fmt.Errorf("cannot list the Leases of AppWrapper controllers: %w", err)
	}
	v := view{waiting: map[string]bool{}}
	for i := range all {
		lease := &all[i]
		switch {
		case l.elects && lease.Namespace == l.own:
			v.own = lease
		case !l.held(lease):
		case isWaiting(lease):
			v.waiting[lease.Namespace] = true
		default:
			v.claim = lease
			if lease.Namespace < l.own {
				v.first = lease
			}
		}
	}
	return v, nil
}

func isWaiting(lease *coordinationv1.Lease) bool {
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	return holder != "" && lease.Annotations[waits] == holder
}

// held: the Lease has a holder, which may still renew it.
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
	return now.Sub(last.since) <= min(duration, longestLease)
}

// listLeases lists those of one name in all namespaces, which is all that the role allows.
func listLeases(reader client.Reader, name string) func(context.Context) ([]coordinationv1.Lease, error) {
	return func(ctx context.Context) ([]coordinationv1.Lease, error) {
		found := &coordinationv1.LeaseList{}
		err := reader.List(ctx, found, client.MatchingFields{"metadata.name": name})
		return found.Items, err
	}
}

// annotateLease writes only the annotation; the rest is leader election's.
func annotateLease(writer client.Writer) func(context.Context, *coordinationv1.Lease, *string) error {
	return func(ctx context.Context, lease *coordinationv1.Lease, holder *string) error {
		before := lease.DeepCopy()
		delete(lease.Annotations, waits)
		if holder != nil {
			if lease.Annotations == nil {
				lease.Annotations = map[string]string{}
			}
			lease.Annotations[waits] = *holder
		}
		if err := writer.Patch(ctx, lease, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("cannot annotate the Lease %s: %w", client.ObjectKeyFromObject(lease), err)
		}
		return nil
	}
}
