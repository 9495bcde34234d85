// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKueueIsComparedWithinPairs(t *testing.T) {
	turn := func(with bool, pair int, rate, admitted, ours float64) WorkloadsTurn {
		return WorkloadsTurn{
			With: with, Pair: pair, Number: 100, PerSecond: rate, Admitted: map[string]float64{"small": admitted},
			CPU: map[string]float64{"kueue-controller-manager": 5, "kube-apiserver": 10, Ours: ours},
		}
	}
	w := Workloads{Results: []WorkloadsTurn{turn(false, 1, 20, 100, 0), turn(true, 1, 10, 200, 1), turn(false, 2, 40, 100, 0), turn(true, 2, 40, 150, 2)}}
	want := `|  | Kueue alone | with our controllers | of that |
|---|---|---|---|
| Workloads a second | 30.0 (20.0–40.0) | 25.0 (10.0–40.0) | 0.75 (0.50–1.00) |
| created to admitted, small, on average, ms | 100 | 175 (150–200) | 1.75 (1.50–2.00) |
| processor time of a Workload, kueue-controller-manager, ms | 5.00 | 5.00 | 1.00 |
| processor time of a Workload, kube-apiserver, ms | 10.0 | 10.0 | 1.00 |
| processor time of a Workload, appwrapper-controller-manager, ms | 0 | 1.50 (1.00–2.00) |  |
| processor time of a Workload, codeflare-controller-manager, ms | 0 | 0 |  |
`
	if diff := cmp.Diff(want, w.Table()); diff != "" {
		t.Error(diff)
	}
}
