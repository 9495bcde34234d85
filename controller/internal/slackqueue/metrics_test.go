// SPDX-License-Identifier: Apache-2.0

package slackqueue

import (
	"testing"

	"github.com/mlbatch/mlbatch/test/metricspage"
)

func TestTheDocumentationHasTheMetrics(t *testing.T) {
	metricspage.Compare(t, "controller/internal/slackqueue", (&report{}).register)
}
