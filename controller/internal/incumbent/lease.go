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

// waits is an annotation of a Lease whose holder, whom it names, does not work: it waits
// for another. Only our controllers write it. Who holds the Lease next is not named.
const waits = "workload.codeflare.dev/waits"

// leases finds a controller by the Lease that it renews. Each AppWrapper controller that
// elects a leader has one of the same name in its namespace, and by holding it claims the
// work, whether it is of ours or not. Of ours that see each other's claims, all but the first
// by the names of their namespaces take theirs back, and make them again when they see none.
// Because each looks again after it has made its claim, two never begin, and because the
// first keeps it, one does.
type leases struct {
	list func(context.Context) ([]coordinationv1.Lease, error)
	// annotate writes waits; nil removes it.
	annotate func(ctx context.Context, lease *coordinationv1.Lease, holder *string) error
	own      string
	// elects: the Lease in our own namespace is the one that we hold ourselves.
	elects bool
	now    func() time.Time
	seen   map[types.NamespacedName]sighting
}

// sighting is when a Lease was renewed, by the clock of who holds it, and since when, by
// ours, we have seen it so. Nothing is concluded from two clocks.
type sighting struct {
	renewed, since time.Time
}

// view is what one look at the Leases shows.
type view struct {
	// own is the Lease that we hold.
	own *coordinationv1.Lease
	// claim of somebody else; first is one whose namespace comes before ours.
	claim, first *coordinationv1.Lease
	// waiting are the namespaces in which one of ours waits.
	waiting map[string]bool
}

// other is who else claims the work.
func (v view) other() string {
	if v.claim == nil {
		return ""
	}
	return fmt.Sprintf("%s, which holds the Lease %s in namespace %s", *v.claim.Spec.HolderIdentity, v.claim.Name, v.claim.Namespace)
}

// longDead: clocks are not that far apart.
const longDead = time.Hour

// giveWay takes our claim back where another comes first, or has no Lease that it could
// take back itself, and makes it when there is nobody; then it looks again.
func (l *leases) giveWay(ctx context.Context, v view, served bool) (view, error) {
	switch {
	case !l.elects:
		return v, nil
	case v.own == nil:
		return v, fmt.Errorf("cannot find the Lease of this controller in namespace %s, which it should hold", l.own)
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

// look finds claims of Leases that have been renewed lately.
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

// annotateLease leaves the rest to who elects the leader.
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
			return fmt.Errorf("cannot say in the Lease %s whether this controller waits: %w", client.ObjectKeyFromObject(lease), err)
		}
		return nil
	}
}
