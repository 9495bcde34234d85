// SPDX-License-Identifier: Apache-2.0

package website

// menu is a group of the navigation, as a page shows it.
type menu struct {
	Caption string
	Open    bool
	Entries []menuEntry
}

type menuEntry struct {
	Caption, Href string
	Current       bool
}

// menus opens the groups that have the page, or all if none has it.
func (v view) menus(groups []group) (all []menu) {
	opened := false
	for _, g := range groups {
		m := menu{Caption: g.caption}
		for _, e := range g.entries {
			current := e.address == v.address
			m.Open = m.Open || current
			m.Entries = append(m.Entries, menuEntry{Caption: e.caption, Href: relative(v.address, e.address), Current: current})
		}
		opened = opened || m.Open
		all = append(all, m)
	}
	for i := range all {
		all[i].Open = all[i].Open || !opened
	}
	return all
}
