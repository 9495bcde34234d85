// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnoughObjectsAreGenerated(t *testing.T) {
	all, err := Generated(1)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range all {
		kind, _, _ := strings.Cut(c.Name, "-")
		count[kind]++
	}
	t.Logf("%d objects: %v", len(all), count)
	for kind, least := range map[string]int{
		"job": 60, "jobset": 80, "statefulset": 30, "deployment": 30, "leaderworkerset": 30, "pytorchjob": 50, "raycluster": 30,
		"tfjob": 16, "xgboostjob": 12, "paddlejob": 12, "jaxjob": 12, "mpijob": 12, "rayjob": 16,
	} {
		if count[kind] < least {
			t.Errorf("%d objects of %s", count[kind], kind)
		}
	}
	again, err := Generated(1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, again); diff != "" {
		t.Error(diff)
	}
}

// An object that is made twice by mistake would make the table longer and prove nothing.
func TestObjectsDiffer(t *testing.T) {
	all, err := Generated(1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, c := range all {
		text, err := c.Object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[string(text)]; other != "" {
			t.Errorf("%s is the same as %s", c.Name, other)
		}
		seen[string(text)] = c.Name
	}
}
