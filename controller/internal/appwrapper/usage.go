// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/controller/ledger"
)

// keepBooks adds the usage to a status that is going to be saved anyway.
func (r *Reconciler) keepBooks(ctx context.Context, o *observation, d *lifecycle.Decision) error {
	before := o.aw.Status
	if equality.Semantic.DeepEqual(before, d.Status) {
		return nil
	}
	facts := ledger.Facts{Checkpoint: o.snapshot.Policy.LastCheckpoint, Deleted: o.snapshot.DeletedAt}
	if !hasQuota(before) && hasQuota(d.Status) {
		var err error
		if facts.Reserved, err = r.reserved(ctx, o.aw.UID); err != nil {
			return err
		}
	}
	d.Status.Usage = ledger.Post(before, d.Status, facts, r.now())
	return nil
}

func hasQuota(s v1beta2.AppWrapperStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, string(v1beta2.QuotaReserved))
}

// closeBooks counts what comes after the last status, once the AppWrapper can be gone.
func (r *Reconciler) closeBooks(o *observation) {
	gone := o.aw.Status
	gone.Phase = v1beta2.AppWrapperTerminating
	usage := ledger.Post(o.aw.Status, gone, ledger.Facts{Deleted: o.snapshot.DeletedAt}, r.now())
	r.metrics.used(o, o.aw.Status.Usage, usage, r.devices)
}

// used counts what has been added to the books. What is in flight is counted when it is split, so no
// counter falls. All series are there before something is counted, because that comes in lumps:
// Prometheus sees no increase in a series that begins with one.
func (m *metrics) used(o *observation, before, after *v1beta2.AppWrapperUsage, known []string) {
	if after == nil {
		return
	}
	if before == nil {
		before = &v1beta2.AppWrapperUsage{}
	}
	m.namespaces.Counted(o.aw.Namespace)
	for _, class := range ledger.Classes() {
		if class == ledger.InFlight {
			continue
		}
		seconds := max(0, float64(*ledger.In(after, class)-*ledger.In(before, class)))
		m.usage.WithLabelValues(o.aw.Namespace, string(class)).Add(seconds)
		for name, n := range o.snapshot.Devices {
			if n > 0 {
				m.deviceUsage.WithLabelValues(o.aw.Namespace, amongDevices(known, name), string(class)).Add(seconds * float64(n))
			}
		}
	}
}

func amongDevices(known []string, name string) string {
	if slices.Contains(known, name) {
		return name
	}
	return other
}
