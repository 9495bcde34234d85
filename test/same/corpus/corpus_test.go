// SPDX-License-Identifier: Apache-2.0

package corpus

import "testing"

func TestPartsAreAllObjects(t *testing.T) {
	all, err := All(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, name := range []string{"quick", "known", "restarts", "all", "1/3", "2/3", "3/3"} {
		part, err := Shard(all, name)
		if err != nil {
			t.Fatal(err)
		}
		count[name] = len(part)
	}
	t.Logf("%d objects: %v", len(all), count)
	if sum := count["1/3"] + count["2/3"] + count["3/3"]; sum != count["all"] || count["all"]+count["restarts"] != len(all) {
		t.Errorf("three thirds and the restarts are %d of %d objects", sum+count["restarts"], len(all))
	}
	if count["quick"] < 40 || count["quick"] > 50 {
		t.Errorf("the quick part has %d objects", count["quick"])
	}
	for _, name := range []string{"", "fast", "0/3", "4/3"} {
		if part, err := Shard(all, name); err == nil {
			t.Errorf("part %q has %d objects", name, len(part))
		}
	}
}
