// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
)

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
	if f, err = f.setStanding(path, team, s); err != nil {
		return File{}, err
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

// setStanding sets what a team is among the others.
func (f File) setStanding(path []string, team Team, s Settings) (File, error) {
	var err error
	if s.Cohort != nil && *s.Cohort != team.Cohort {
		f, err = f.put(under(path, "cohort"), f.scalar(*s.Cohort))
	}
	if err == nil && s.Weight != nil && (team.Weight == nil || *team.Weight != *s.Weight) {
		f, err = f.put(under(path, "weight"), weight(*s.Weight))
	}
	if err == nil && s.StopPolicy != nil && *s.StopPolicy != cmp.Or(team.StopPolicy, "None") {
		f, err = f.put(under(path, "stopPolicy"), f.scalar(*s.StopPolicy))
	}
	return f, err
}

func under(path []string, steps ...string) []string { return slices.Concat(path, steps) }

func (f File) setMembers(path, now []string, m Members) (File, error) {
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
		if f, err = f.joined(path, name); err != nil {
			return File{}, err
		}
		now = append(now, name)
	}
	return f, nil
}

// joined adds a name to a list, which may not be there yet.
func (f File) joined(path []string, name string) (File, error) {
	if list, err := f.written(path); err != nil || list == nil {
		return f.put(path, f.list([]string{name}))
	}
	return f.push(path, f.scalar(name), []string{"- " + f.scalar(name)})
}

// setShare sets the quota of one resource.
func (f File) setShare(quota []string, team Team, a Assignment) (File, error) {
	path := under(quota, a.Flavor, a.Resource)
	share, has := team.Quota[a.Flavor][a.Resource]
	switch written, err := f.written(path); {
	case !has || err != nil:
		return f.newShare(quota, team, a)
	case a.Nominal == None:
		return f.drop(path)
	case isMapping(written):
		return f.setParts(path, share, a)
	}
	if !differs(a.Nominal, &share.Nominal) && !differs(a.BorrowingLimit, nil) && !differs(a.LendingLimit, nil) {
		return f, nil
	}
	a.Nominal = cmp.Or(a.Nominal, share.Nominal.String())
	text, err := f.share(team.Name, a)
	if err != nil {
		return File{}, err
	}
	return f.put(path, text)
}

// setParts sets the amount and the limits of a quota that has, or had, limits.
func (f File) setParts(path []string, share Share, a Assignment) (File, error) {
	var err error
	for _, part := range []struct {
		key, amount string
		now         *Amount
	}{{"nominal", a.Nominal, &share.Nominal}, {"borrowingLimit", a.BorrowingLimit, share.BorrowingLimit}, {"lendingLimit", a.LendingLimit, share.LendingLimit}} {
		switch {
		case !differs(part.amount, part.now):
		case part.amount == None:
			f, err = f.drop(under(path, part.key))
		default:
			f, err = f.put(under(path, part.key), f.number(part.amount))
		}
		if err != nil {
			return File{}, err
		}
	}
	return f, nil
}

// newShare adds a resource to the quota of a team.
func (f File) newShare(path []string, team Team, a Assignment) (File, error) {
	text, err := f.share(team.Name, a)
	if err != nil {
		return File{}, err
	}
	steps := []string{a.Flavor, a.Resource}
	for last := len(steps) - 1; last >= 0 && f.empty(under(path, steps[:last]...)); last-- {
		text, steps = "{"+f.scalar(steps[last])+": "+text+"}", steps[:last]
	}
	return f.put(under(path, steps...), text)
}

// empty reports whether there is no mapping at a path, or null.
func (f File) empty(path []string) bool {
	value, err := f.written(path)
	return err != nil || !isMapping(value)
}

func isMapping(value any) bool {
	_, is := value.(map[string]any)
	return is
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
