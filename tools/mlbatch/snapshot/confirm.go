// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
)

// Confirmed looks, and looks again after a pause if there is something to confirm: what is found only once may be a
// thing of a moment.
func Confirmed(ctx context.Context, api client.Client, only []string, t audit.Tolerance, pause time.Duration) (audit.Moment, []audit.Finding, error) {
	m, err := Read(ctx, api, time.Now(), only)
	if err != nil {
		return m, nil, err
	}
	found := m.Findings(t)
	if len(found) == 0 {
		return m, nil, nil
	}
	var s audit.Sightings
	s.Next(found)
	select {
	case <-ctx.Done():
		return m, nil, ctx.Err()
	case <-time.After(pause):
	}
	if m, err = Read(ctx, api, time.Now(), only); err != nil {
		return m, nil, err
	}
	found, _ = s.Next(m.Findings(t))
	return m, found, nil
}
