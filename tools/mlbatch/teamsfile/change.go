// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Settings are what a user wants of a team. What is not set stays as it is.
type Settings struct {
	// Namespace, QueueName and Existing are only for a new team. Existing means that its namespace exists already.
	Namespace, QueueName string
	Existing             bool
	Cohort               *string
	Weight               *float64
	Quota                []Assignment
	Users, Groups        Members
}

// Members come and go.
type Members struct{ Add, Remove []string }

// Assignment sets the quota of a resource in a flavor. Amounts that are empty stay as they are.
type Assignment struct {
	Flavor, Resource                      string
	Nominal, BorrowingLimit, LendingLimit string
}

// None is the amount of a quota or limit that is to be removed.
const None = "none"

// wording is how an assignment is written.
const wording = "write [FLAVOR:]RESOURCE=AMOUNT[,borrowingLimit=AMOUNT][,lendingLimit=AMOUNT], such as h100:nvidia.com/gpu=8,lendingLimit=4"

// ParseAssignment reads how a user writes a quota.
func ParseAssignment(text string) (Assignment, error) {
	wrong := fmt.Errorf("cannot read %q: %s", text, wording)
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" || value == "" {
		return Assignment{}, wrong
	}
	a := Assignment{Resource: name}
	if flavor, rest, two := strings.Cut(name, ":"); two {
		a.Flavor, a.Resource = flavor, rest
	}
	for _, part := range strings.Split(value, ",") {
		key, amount, limited := strings.Cut(part, "=")
		target := map[string]*string{"borrowingLimit": &a.BorrowingLimit, "lendingLimit": &a.LendingLimit}[key]
		if !limited {
			target, amount = &a.Nominal, part
		}
		if target == nil || *target != "" || amount == "" {
			return Assignment{}, wrong
		}
		if _, err := resource.ParseQuantity(amount); err != nil && amount != None {
			return Assignment{}, fmt.Errorf("cannot read %q: %q is not an amount: write a number, with a unit if it needs one, such as 8, 500m or 512Gi", text, amount)
		}
		*target = amount
	}
	if a.Resource == "" || a.Nominal == None && a.BorrowingLimit+a.LendingLimit != "" {
		return Assignment{}, wrong
	}
	return a, nil
}

// completed finds the flavors of assignments: a file with one flavor need not be told which.
func (t Teams) completed(all []Assignment) ([]Assignment, error) {
	var flavors []string
	for _, f := range t.Flavors {
		flavors = append(flavors, f.Name)
	}
	all = slices.Clone(all)
	for i := range all {
		a := &all[i]
		switch {
		case a.Flavor == "" && len(flavors) == 1:
			a.Flavor = flavors[0]
		case a.Flavor == "":
			return nil, fmt.Errorf("the file has %d flavors: say which one %s is for, such as %s:%s=…", len(flavors), a.Resource, flavors[0], a.Resource)
		case !slices.Contains(flavors, a.Flavor):
			return nil, UnknownError{What: "flavor", Name: a.Flavor, Known: flavors}
		}
		for _, b := range all[:i] {
			if a.Flavor == b.Flavor && a.Resource == b.Resource {
				return nil, fmt.Errorf("%s in flavor %s is set twice: write its amount and limits once, with commas", a.Resource, a.Flavor)
			}
		}
	}
	return all, nil
}

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
	lines, text, err := f.team(name, s, quota)
	if err != nil {
		return File{}, err
	}
	if _, has := f.values["teams"]; !has {
		if f, err = f.put([]string{"teams"}, "[]"); err != nil {
			return File{}, err
		}
	}
	return f.push([]string{"teams"}, text, lines)
}

// team returns a new team as a block, and in one line.
func (f File) team(name string, s Settings, quota []Assignment) (lines []string, text string, err error) {
	entries := [][2]string{{"name", f.scalar(name)}}
	add := func(key, text string) { entries = append(entries, [2]string{key, text}) }
	if s.Namespace != "" {
		add("namespace", f.scalar(s.Namespace))
	}
	if s.Existing {
		add("createNamespace", "false")
	}
	if len(s.Users.Add) > 0 {
		add("users", f.list(s.Users.Add))
	}
	if len(s.Groups.Add) > 0 {
		add("groups", f.list(s.Groups.Add))
	}
	if s.Cohort != nil {
		add("cohort", f.scalar(*s.Cohort))
	}
	if s.QueueName != "" {
		add("queueName", f.scalar(s.QueueName))
	}
	if s.Weight != nil {
		add("weight", strconv.FormatFloat(*s.Weight, 'g', -1, 64))
	}
	flavors, err := f.quota(name, quota)
	if err != nil {
		return nil, "", err
	}
	var all []string
	for i, e := range entries {
		lines = append(lines, map[bool]string{true: "- ", false: "  "}[i == 0]+e[0]+": "+e[1])
		all = append(all, f.scalar(e[0])+": "+e[1])
	}
	if len(flavors) > 0 {
		lines = append(lines, "  quota:")
		all = append(all, f.scalar("quota")+": {"+strings.Join(flavors, ", ")+"}")
	}
	for _, flavor := range flavors {
		lines = append(lines, "    "+flavor)
	}
	return lines, "{" + strings.Join(all, ", ") + "}", nil
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

// Remove returns the file without a team.
func (f File) Remove(t Teams, name string) (File, error) {
	path, _, err := f.find(t, name)
	if err != nil {
		return File{}, err
	}
	return f.drop(path)
}

// find returns where a team is in the file.
func (f File) find(t Teams, name string) ([]string, Team, error) {
	team, err := t.Find(name)
	if err != nil {
		return nil, Team{}, err
	}
	if err := f.editable(); err != nil {
		return nil, Team{}, err
	}
	return []string{"teams", strconv.Itoa(slices.Index(t.Names(), name))}, team, nil
}

// Set returns the file with other settings of a team.
func (f File) Set(t Teams, name string, s Settings) (File, error) {
	path, team, err := f.find(t, name)
	if err != nil {
		return File{}, err
	}
	quota, err := t.completed(s.Quota)
	if err != nil {
		return File{}, err
	}
	if s.Cohort != nil && *s.Cohort != team.Cohort {
		if f, err = f.put(under(path, "cohort"), f.scalar(*s.Cohort)); err != nil {
			return File{}, err
		}
	}
	if s.Weight != nil && (team.Weight == nil || *team.Weight != *s.Weight) {
		if f, err = f.put(under(path, "weight"), strconv.FormatFloat(*s.Weight, 'g', -1, 64)); err != nil {
			return File{}, err
		}
	}
	if f, err = f.setMembers(under(path, "users"), team.Users, s.Users); err != nil {
		return File{}, err
	}
	if f, err = f.setMembers(under(path, "groups"), team.Groups, s.Groups); err != nil {
		return File{}, err
	}
	for _, a := range quota {
		if f, err = f.setShare(under(path, "quota"), team, a); err != nil {
			return File{}, err
		}
	}
	return f, nil
}

func under(path []string, steps ...string) []string { return slices.Concat(path, steps) }

func (f File) setMembers(path []string, now []string, m Members) (File, error) {
	var err error
	now = slices.Clone(now)
	for _, name := range m.Remove {
		i := slices.Index(now, name)
		if i < 0 {
			return File{}, UnknownError{What: "member of the team's " + path[len(path)-1], Name: name, Known: now}
		}
		if f, err = f.drop(under(path, strconv.Itoa(i))); err != nil {
			return File{}, err
		}
		now = slices.Delete(now, i, i+1)
	}
	for _, name := range m.Add {
		if slices.Contains(now, name) {
			continue
		}
		if f.at(path) == nil {
			f, err = f.put(path, f.list([]string{name}))
		} else {
			f, err = f.push(path, f.scalar(name), []string{"- " + f.scalar(name)})
		}
		if err != nil {
			return File{}, err
		}
		now = append(now, name)
	}
	return f, nil
}

// setShare sets the quota of one resource.
func (f File) setShare(path []string, team Team, a Assignment) (File, error) {
	share, has := team.Quota[a.Flavor][a.Resource]
	switch {
	case !has:
		return f.newShare(path, team, a)
	case a.Nominal == None:
		return f.drop(under(path, a.Flavor, a.Resource))
	}
	path = under(path, a.Flavor, a.Resource)
	written, err := f.written(path)
	if err != nil {
		return File{}, err
	}
	if _, limited := written.(map[string]any); !limited {
		if a.Nominal == "" || differs(a.Nominal, &share.Nominal) || differs(a.BorrowingLimit, nil) || differs(a.LendingLimit, nil) {
			return f.replaced(path, team, share, a)
		}
		return f, nil
	}
	if a.Nominal != "" && differs(a.Nominal, &share.Nominal) {
		if f, err = f.put(under(path, "nominal"), f.number(a.Nominal)); err != nil {
			return File{}, err
		}
	}
	now := map[string]*Amount{"borrowingLimit": share.BorrowingLimit, "lendingLimit": share.LendingLimit}
	for _, limit := range a.limits() {
		key, amount := limit[0], limit[1]
		switch {
		case amount == "" || !differs(amount, now[key]):
		case amount == None:
			f, err = f.drop(under(path, key))
		default:
			f, err = f.put(under(path, key), f.number(amount))
		}
		if err != nil {
			return File{}, err
		}
	}
	return f, nil
}

// replaced writes a quota that had no limits.
func (f File) replaced(path []string, team Team, share Share, a Assignment) (File, error) {
	if a.Nominal == "" {
		a.Nominal = share.Nominal.String()
	}
	text, err := f.share(team.Name, a)
	if err != nil || text == share.Nominal.String() {
		return f, err
	}
	return f.put(path, text)
}

// newShare adds a resource to the quota of a team.
func (f File) newShare(path []string, team Team, a Assignment) (File, error) {
	text, err := f.share(team.Name, a)
	if err != nil {
		return File{}, err
	}
	steps := []string{a.Flavor, a.Resource}
	for len(steps) > 1 && f.empty(under(path, steps[:len(steps)-1]...)) {
		text = "{" + f.scalar(steps[len(steps)-1]) + ": " + text + "}"
		steps = steps[:len(steps)-1]
	}
	if len(steps) == 1 && f.empty(path) {
		text = "{" + f.scalar(steps[0]) + ": " + text + "}"
		steps = nil
	}
	return f.put(under(path, steps...), text)
}

// empty reports whether there is no mapping at a path, or null.
func (f File) empty(path []string) bool {
	value, err := f.written(path)
	_, mapping := value.(map[string]any)
	return err != nil || !mapping
}

// written is the value at a path of the file, wherever anchors and aliases have it.
func (f File) written(path []string) (any, error) {
	var value any = f.values
	for _, step := range path {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(parent) {
				return nil, errors.New("the file has no such value")
			}
			value = parent[i]
		default:
			return nil, errors.New("the file has no such value")
		}
	}
	return value, nil
}

// differs reports whether an amount that a user wrote is another one than that in the file.
func differs(text string, now *Amount) bool {
	if text == "" || text == None {
		return text == None && now != nil
	}
	quantity, err := resource.ParseQuantity(text)
	return err != nil || now == nil || quantity.Cmp(now.Quantity) != 0
}

// Resources are those that some team or cohort has quota of.
func (t Teams) Resources() []string {
	names := map[string]bool{}
	for _, team := range t.Teams {
		for _, shares := range team.Quota {
			for name := range shares {
				names[name] = true
			}
		}
	}
	for _, cohort := range t.Cohorts {
		for _, shares := range cohort.Quota {
			for name := range shares {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
