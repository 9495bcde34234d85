// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/ledger"
)

// booksBalance compares the classes with Kueue's clock. To the second, which is stricter than 1 %:
// all times in a world are whole seconds.
func booksBalance(m moment) bool {
	return ledger.Sum(ledger.Until(m.status, m.now)) == m.claimedUntilNow()
}

func noSumFalls(m moment) bool {
	if m.was.Usage == nil {
		return true
	}
	if m.status.Usage == nil {
		return false
	}
	for _, class := range ledger.Classes() {
		if class != ledger.InFlight && seconds(m.status, class) < seconds(m.was, class) {
			return false
		}
	}
	return true
}

func seconds(s v1beta2.AppWrapperStatus, class ledger.Class) int64 { return *ledger.In(s.Usage, class) }
