// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Add returns the file with a new team at its end.
func (f File) Add(t Teams, name string, s Settings) (File, error) {
	if slices.Contains(t.Names(), name) {
		return File{}, fmt.Errorf("the file already has a team %q: 'mlbatch team set' changes it", name)
	}
	quota, err := t.completed(s.Quota)
	if err != nil {
		return File{}, err
	}
	if err := f.editable(); err != nil {
		return File{}, err
	}
	flavors, err := f.quota(name, quota)
	if err != nil {
		return File{}, err
	}
	if _, has := f.values["teams"]; !has {
		if f, err = f.put([]string{"teams"}, "[]"); err != nil {
			return File{}, err
		}
	}
	text, lines := f.team(f.entries(name, s), flavors)
	return f.push([]string{"teams"}, text, lines)
}

// entries are what a new team has beside its quota: keys and values, in the order of docs/quota.md.
func (f File) entries(name string, s Settings) [][2]string {
	entries := [][2]string{{"name", f.scalar(name)}}
	add := func(wanted bool, key, text string) {
		if wanted {
			entries = append(entries, [2]string{key, text})
		}
	}
	add(s.Namespace != "", "namespace", f.scalar(s.Namespace))
	add(s.Existing, "createNamespace", "false")
	add(len(s.Users.Add) > 0, "users", f.list(s.Users.Add))
	add(len(s.Groups.Add) > 0, "groups", f.list(s.Groups.Add))
	if s.Cohort != nil {
		add(true, "cohort", f.scalar(*s.Cohort))
	}
	add(s.QueueName != "", "queueName", f.scalar(s.QueueName))
	if s.Weight != nil {
		add(true, "weight", weight(*s.Weight))
	}
	if s.StopPolicy != nil {
		add(true, "stopPolicy", f.scalar(*s.StopPolicy))
	}
	return entries
}

func weight(w float64) string { return strconv.FormatFloat(w, 'g', -1, 64) }

// team writes a new team in one line, and as a block.
func (f File) team(entries [][2]string, flavors []string) (text string, lines []string) {
	var all []string
	for i, e := range entries {
		begin := "  "
		if i == 0 {
			begin = "- "
		}
		lines = append(lines, begin+e[0]+": "+e[1])
		all = append(all, f.scalar(e[0])+": "+e[1])
	}
	if len(flavors) > 0 {
		lines = append(lines, "  quota:")
		all = append(all, f.scalar("quota")+": {"+strings.Join(flavors, ", ")+"}")
	}
	return "{" + strings.Join(all, ", ") + "}", append(lines, indentedBy(4, flavors)...)
}

// quota writes the quota of a new team, a text for each flavor.
func (f File) quota(team string, quota []Assignment) ([]string, error) {
	var order []string
	shares := map[string][]string{}
	for _, a := range quota {
		text, err := f.share(team, a)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(order, a.Flavor) {
			order = append(order, a.Flavor)
		}
		shares[a.Flavor] = append(shares[a.Flavor], f.scalar(a.Resource)+": "+text)
	}
	for i, flavor := range order {
		order[i] = f.scalar(flavor) + ": {" + strings.Join(shares[flavor], ", ") + "}"
	}
	return order, nil
}

// share writes a quota that the team does not have yet.
func (f File) share(team string, a Assignment) (string, error) {
	if a.Nominal == "" || a.Nominal == None {
		return "", fmt.Errorf("team %q has no quota of %s in flavor %s: write %s:%s=AMOUNT", team, a.Resource, a.Flavor, a.Flavor, a.Resource)
	}
	parts := []string{f.scalar("nominal") + ": " + f.number(a.Nominal)}
	for _, limit := range a.limits() {
		if limit[1] != "" && limit[1] != None {
			parts = append(parts, f.scalar(limit[0])+": "+f.number(limit[1]))
		}
	}
	if len(parts) == 1 {
		return f.number(a.Nominal), nil
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

func (a Assignment) limits() [][2]string {
	return [][2]string{{"borrowingLimit", a.BorrowingLimit}, {"lendingLimit", a.LendingLimit}}
}

func (f File) list(items []string) string {
	var texts []string
	for _, item := range items {
		texts = append(texts, f.scalar(item))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
