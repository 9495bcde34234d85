// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// addWords gives the earlier attempts of a status their last words, which the cache drops, before a further attempt is
// saved: lists are written as a whole. So only who fails or is evicted again pays a request.
func (r *Reconciler) addWords(ctx context.Context, o *observation, d *lifecycle.Decision) error {
	before, after := o.aw.Status.LastAttempts, d.Status.LastAttempts
	if len(before) == 0 || len(after) == 0 || before[len(before)-1].Ended.Equal(&after[len(after)-1].Ended) {
		return nil
	}
	stored := &v1beta2.AppWrapper{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o.aw), stored); err != nil {
		return fmt.Errorf("cannot read the last words of earlier attempts: %w", err)
	}
	for i := range after {
		for _, attempt := range stored.Status.LastAttempts {
			if attempt.Began.Equal(&after[i].Began) && attempt.Ended.Equal(&after[i].Ended) {
				after[i].LastWords = attempt.LastWords
			}
		}
	}
	d.Status.LastAttempts = lifecycle.BoundAttempts(after)
	return nil
}
