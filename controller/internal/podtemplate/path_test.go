// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"strings"
	"testing"
)

func spec() map[string]any {
	return map[string]any{"containers": []any{map[string]any{"name": "main", "image": "work"}}}
}

func TestFind(t *testing.T) {
	job := map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": spec()},
		"groups": []any{
			map[string]any{"template": map[string]any{"spec": spec()}},
			[]any{map[string]any{"spec": spec()}},
		},
		"number":  int64(1),
		"nospec":  map[string]any{},
		"badspec": map[string]any{"spec": "text"},
		"typo":    map[string]any{"spec": map[string]any{"sidecars": []any{}}},
		"shape":   map[string]any{"spec": map[string]any{"containers": "main"}},
	}}
	cases := map[string]struct {
		path string
		want string // part of the error; empty if the pod template is found
	}{
		"fields lead to a template":                    {path: "template.spec.template"},
		"an index leads into a list":                   {path: "template.spec.groups[0].template"},
		"indexes may follow each other":                {path: "template.spec.groups[1][0]"},
		"another beginning is refused":                 {path: "spec.template", want: `must begin with "template"`},
		"a longer first word is refused":               {path: "templates.spec", want: `must begin with "template"`},
		"an empty path is refused":                     {path: "", want: `must begin with "template"`},
		"a bracket that stays open is refused":         {path: "template.spec.groups[0", want: `"[0" is not closed`},
		"an index that is no number is refused":        {path: "template.spec.groups[x]", want: `"x" is not an index`},
		"an index without digits is refused":           {path: "template.spec.groups[]", want: `"" is not an index`},
		"a negative index is refused":                  {path: "template.spec.groups[-1]", want: `"-1" is not an index`},
		"an index with a sign is refused":              {path: "template.spec.groups[+1]", want: `"+1" is not an index`},
		"an index beyond the list is refused":          {path: "template.spec.groups[2]", want: "index 2 is out of bounds: the list has 2 items"},
		"an index into an object is refused":           {path: "template.spec[0]", want: "cannot look up index 0 in something that is not a list"},
		"a field of a list is refused":                 {path: "template.spec.groups.template", want: `cannot look up field "template" in something that is not an object`},
		"a field that is missing is refused":           {path: "template.spec.templates", want: `there is no field "templates"`},
		"two dots are refused":                         {path: "template..spec", want: `there is no field ""`},
		"a dot at the end is refused":                  {path: "template.spec.", want: `there is no field ""`},
		"a bracket too many is refused":                {path: "template.spec.groups[0]].template", want: `unexpected "].template"`},
		"letters after a bracket are refused":          {path: "template.spec.groups[0]template", want: `unexpected "template"`},
		"a closing bracket in a field is refused":      {path: "template.spec]", want: `there is no field "spec]"`},
		"something that is no object is refused":       {path: "template.spec.number", want: "does not lead to an object"},
		"an object without a spec is no pod template":  {path: "template.spec.nospec", want: "it has no spec"},
		"a spec that is no object is no pod template":  {path: "template.spec.badspec", want: "its spec is not an object"},
		"a field that pods do not have is refused":     {path: "template.spec.typo", want: `unknown field "sidecars"`},
		"a field of another type is not valid":         {path: "template.spec.shape", want: `the pod template at "template.spec.shape" is not valid`},
		"the whole template may lack a valid pod spec": {path: "template", want: "does not lead to a pod template"},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			_, err := Find(job, c.path)
			if c.want == "" && err != nil {
				t.Errorf("unexpected error: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestFindMayLeadToAWholePod(t *testing.T) {
	pod := map[string]any{"spec": spec()}
	if _, err := Find(pod, "template"); err != nil {
		t.Error(err)
	}
}

func TestEditingWhatWasFoundEditsTheObject(t *testing.T) {
	job := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec()}}}
	template, err := Find(job, "template.spec.template")
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(template, Edit{SchedulerName: "gang"}); err != nil {
		t.Fatal(err)
	}
	again, err := Find(job, "template.spec.template.spec")
	if err == nil {
		t.Fatalf("a pod spec passed for a pod template: %v", again)
	}
	got := job["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["schedulerName"]
	if got != "gang" {
		t.Errorf("the scheduler name in the object is %v", got)
	}
}
