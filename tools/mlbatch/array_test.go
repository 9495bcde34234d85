// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/test/wording"
)

// sweeping is a busy namespace with an array of three AppWrappers, which are in different phases.
func sweeping() map[string]string {
	world := busyNamespace()
	var all []string
	for number, phase := range map[int]string{0: "Succeeded", 2: "Suspended", 10: "Suspended"} {
		one := fmt.Sprintf(`{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"sweep-%d","namespace":"blue","uid":"uid-sweep-%[1]d",
			"creationTimestamp":"2126-01-01T00:00:00Z","labels":{"mlbatch.dev/array":"sweep","workload.codeflare.dev/user":"alice"}},"spec":{"components":[]},"status":{"phase":%q}}`, number, phase)
		world[fmt.Sprintf("%s/sweep-%d", wrappers, number)] = one
		world[fmt.Sprintf("DELETE %s/sweep-%d", wrappers, number)] = one
		all = append(all, one)
	}
	world[wrappers] = list("workload.codeflare.dev/v1beta2", "AppWrapper", all...)
	world[inBlue+"/localqueues"] = list("kueue.x-k8s.io/v1beta2", "LocalQueue")
	return world
}

func TestAnArrayIsOneLineOfTheList(t *testing.T) {
	out, _, _, err := ask(t, sweeping(), "list")
	if err != nil || !strings.Contains(out, "\nsweep[3]  AppWrapper  alice  -     2 Queued, 1 Succeeded  ") || strings.Contains(out, "sweep-") {
		t.Errorf("got %q, %v", out, err)
	}
	out, _, _, err = ask(t, sweeping(), "list -o wide")
	if err != nil || strings.Count(out, "\nsweep-") != 3 {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestTheNumbersOfAnArrayAreFoundByItsName(t *testing.T) {
	out, _, _, err := ask(t, sweeping(), "status sweep")
	if first, second, third := strings.Index(out, "\nsweep-0 "), strings.Index(out, "\nsweep-2 "), strings.Index(out, "\nsweep-10 "); err != nil || first < 0 || second < first || third < second {
		t.Errorf("got %q, %v", out, err)
	}
	const question = "Cancel these 2, with all that they have created: AppWrapper sweep-2 (Suspended), AppWrapper sweep-10 (Suspended)? [y/N] "
	for _, line := range []string{"cancel sweep", "cancel --array sweep", "cancel sweep sweep-10"} {
		out, progress, requests, err := answer(t, sweeping(), line, "y\n")
		if err != nil || progress != question || strings.Count(out, " was deleted in namespace blue\n") != 2 || !strings.HasPrefix(requests[len(requests)-1], "DELETE ") {
			t.Errorf("%s: got %q, %q, %q, %v", line, out, progress, requests, err)
		}
	}
	if labels := "?labelSelector=mlbatch.dev%2Farray%3Dsweep&limit=500"; !strings.Contains(requested(t, "cancel sweep"), "GET "+wrappers+labels) {
		t.Errorf("%s does not ask for %s", "cancel sweep", labels)
	}
	out, progress, _, err := ask(t, sweeping(), "retry sweep")
	wording.OneSentence(t, out+progress, err, "none of the 3 numbers of array sweep is Failed")
}

func requested(t *testing.T, line string) string {
	t.Helper()
	_, _, requests, _ := answer(t, sweeping(), line, "")
	return strings.Join(requests, "\n")
}

func TestTheLogOfANumber(t *testing.T) {
	indexed := sweeping()
	indexed[wrappers+"/sweep"] = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"sweep","namespace":"blue","uid":"u",
		"annotations":{"mlbatch.dev/recipe":"{\"settings\":{},\"array\":{\"First\":5,\"Last\":9,\"AtATime\":2}}"}},"spec":{"components":[]},"status":{"phase":"Suspended"}}`
	for want, row := range map[string]struct {
		world map[string]string
		line  string
	}{
		"AppWrapper sweep-2 has no pods":                                         {sweeping(), "logs sweep --index 2"},
		"there is no AppWrapper, Run or queued job sweep-3 in namespace blue":    {sweeping(), "logs sweep --index 3"},
		"the array sweep has no number 4: it has 5 to 9":                         {indexed, "logs sweep --index 4"},
		"AppWrapper sweep has no pods":                                           {indexed, "logs sweep --index 7"},
		"AppWrapper sweep-2 is no array of 'mlbatch submit --array': use --rank": {sweeping(), "logs sweep-2 --index 2"},
	} {
		out, progress, _, err := ask(t, row.world, row.line)
		wording.OneSentence(t, out+progress, err, want)
	}
}
