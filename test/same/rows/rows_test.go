// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
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
