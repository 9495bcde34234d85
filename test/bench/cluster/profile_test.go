// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package cluster_test

import (
	"slices"
	"strconv"

	"github.com/google/pprof/profile"

	"github.com/mlbatch/mlbatch/test/bench"
)

const (
	// profiled is the scenario that is played once more, for a profile of the API server.
	profiled = "2-burst"
	// profileSeconds is less than the lives of the scenario need to begin.
	profileSeconds = 10
)

// profile plays a scenario that is not measured, because the profile costs something, too.
func (m *machine) profile(scenarios []bench.Scenario) *bench.Profile {
	m.Helper()
	i := slices.IndexFunc(scenarios, func(s bench.Scenario) bool { return s.Name == profiled })
	if i < 0 {
		m.Fatalf("there is no scenario %s", profiled)
	}
	type answer struct {
		text []byte
		err  error
	}
	asked := make(chan answer, 1)
	go func() {
		text, err := m.api.Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(profileSeconds)).DoRaw(m.Context())
		asked <- answer{text, err}
	}()
	m.run(scenarios[i])
	got := <-asked
	if got.err != nil {
		m.Fatalf("cannot profile the API server: %v", got.err)
	}
	p, err := profile.ParseData(got.text)
	if err != nil {
		m.Fatalf("cannot read the profile of the API server: %v", err)
	}
	result := bench.ProfileOf(profiled, p)
	return &result
}
