// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install"
)

func TestPartsAreATable(t *testing.T) {
	all := []install.Component{
		{Name: "release mlbatch", State: "installed", Wanted: "0.1.0", Found: "0.1.0", Ready: true},
		{Name: "kueue", State: "external", Wanted: "v0.19.2", Found: "v0.16.1", Ready: true},
		{Name: "coscheduler", State: "installed", Wanted: "v0.34.7", Found: "v0.34.7", Why: "scheduler-plugins-scheduler: 0 of 1 pods ready"},
		{Name: "jobset", State: "off", Wanted: "v0.12.0"},
	}
	var out strings.Builder
	if err := printParts(&out, all); err != nil {
		t.Fatal(err)
	}
	want := `component        wanted   found    state      ready
release mlbatch  0.1.0    0.1.0    installed  yes
kueue            v0.19.2  v0.16.1  external   yes
coscheduler      v0.34.7  v0.34.7  installed  no: scheduler-plugins-scheduler: 0 of 1 pods ready
jobset           v0.12.0  -        off        -
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if err := unready(all); err == nil || err.Error() != "1 component(s) not ready; see the table for the reasons" {
		t.Errorf("got %v", err)
	}
	if err := unready(all[:2]); err != nil {
		t.Error(err)
	}
	if err := unready([]install.Component{{State: "leaving"}}); err == nil {
		t.Error("what goes is taken for ready")
	}
}
