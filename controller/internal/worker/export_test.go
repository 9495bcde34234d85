// SPDX-License-Identifier: Apache-2.0

package worker

import "time"

// Patience sets how long a request may make no progress.
func (w *Worker) Patience(length time.Duration) { w.patience = length }
