// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/same/corpus"
	"github.com/mlbatch/mlbatch/test/same/rows"
)

func TestResultsAreJudgedByTheirRows(t *testing.T) {
	known := rows.Rows{Same: []string{"sample"}, Refused: map[string]string{"suspended": "set suspend to false"}, Different: map[string]string{"slow": "known"}}
	for name, row := range map[string]struct {
		result rows.Result
		wrong  bool
	}{
		"the same":                             {rows.Result{Name: "plain"}, false},
		"different, and no row":                {rows.Result{Name: "plain", Differences: []string{"pods"}}, true},
		"different, with a row":                {rows.Result{Name: "slow", Differences: []string{"pods"}}, false},
		"the same, with a row":                 {rows.Result{Name: "slow"}, false},
		"refused, and no row":                  {rows.Result{Name: "plain", Refusal: "no"}, true},
		"refused, with its sentence":           {rows.Result{Name: "suspended", Refusal: "webhook: set suspend to false"}, false},
		"refused, with another sentence":       {rows.Result{Name: "suspended", Refusal: "no"}, true},
		"a sample with a row":                  {rows.Result{Name: "sample", Sample: true}, false},
		"a sample without a row":               {rows.Result{Name: "other", Sample: true}, true},
		"not refused, with a row that says so": {rows.Result{Name: "suspended"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := known.Judge(row.result); (got != "") != row.wrong {
				t.Errorf("wrong: %q", got)
			}
		})
	}
}

func TestADifferenceHasToBeThereTwice(t *testing.T) {
	for name, row := range map[string]struct{ first, second, want []string }{
		"not again":         {[]string{"order"}, nil, nil},
		"again":             {[]string{"order", "pods"}, []string{"pods"}, []string{"pods"}},
		"each time another": {[]string{"order"}, []string{"pods"}, []string{"pods"}},
		"other pods were ready first": {
			[]string{"a was created after b: bare began, wrapped was ready"}, []string{"b was created after a: bare began, wrapped was ready"}, []string{},
		},
		"the same pods were ready first": {
			[]string{"a was created after b: bare began, wrapped was ready"}, []string{"a was created after b: bare began, wrapped was ready"},
			[]string{"a was created after b: bare began, wrapped was ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, rows.Twice(row.first, row.second)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRowsAreOfObjectsThatThereAre(t *testing.T) {
	known, err := rows.Read("../rows.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := corpus.All(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	if unknown := known.Unknown(names); len(unknown) > 0 {
		t.Errorf("there are no objects %q", unknown)
	}
}

// Each sample has one row, few objects differ, and many are the same.
func TestRowsAreComplete(t *testing.T) {
	known, err := rows.Read("../rows.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := corpus.All(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	samples, generated := 0, 0
	for _, c := range all {
		_, refused := known.Refused[c.Name]
		_, different := known.Different[c.Name]
		same := slices.Contains(known.Same, c.Name)
		switch {
		case c.Sample && count(refused, different, same) != 1:
			t.Errorf("%d rows name the sample %s", count(refused, different, same), c.Name)
		case same && !c.Sample:
			t.Errorf("a row names %s, which is no sample", c.Name)
		case same:
			samples++
		case !c.Sample && !c.Known && c.Disturb == "" && !refused && !different:
			generated++
		}
	}
	t.Logf("%d samples and %d generated objects are the same", samples, generated)
	if len(known.Different) > 3 || samples < 90 || generated < 280 {
		t.Errorf("%d objects differ; %d samples and %d generated objects are the same", len(known.Different), samples, generated)
	}
}

// count counts what holds.
func count(all ...bool) (n int) {
	for _, holds := range all {
		if holds {
			n++
		}
	}
	return n
}
