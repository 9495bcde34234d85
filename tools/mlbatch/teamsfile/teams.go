// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Teams is what a file says of teams, slack queues, cohorts and flavors.
type Teams struct {
	Teams       []Team       `json:"teams"`
	SlackQueues []SlackQueue `json:"slackQueues,omitempty"`
	Cohorts     []Cohort     `json:"cohorts,omitempty"`
	Flavors     []Flavor     `json:"flavors"`
}

// Answer is what programs get of a file.
type Answer struct {
	Items       []Team       `json:"items"`
	SlackQueues []SlackQueue `json:"slackQueues,omitempty"`
	Cohorts     []Cohort     `json:"cohorts,omitempty"`
	Flavors     []Flavor     `json:"flavors"`
}

// Answer is what programs get.
func (t Teams) Answer() Answer {
	return Answer{append([]Team{}, t.Teams...), t.SlackQueues, t.Cohorts, append([]Flavor{}, t.Flavors...)}
}

// Team is one team.
type Team struct {
	Name string `json:"name"`
	// Namespace, Cohort and QueueName are those that the chart takes if the file has none.
	Namespace string   `json:"namespace"`
	Cohort    string   `json:"cohort"`
	QueueName string   `json:"queueName"`
	Weight    *float64 `json:"weight,omitempty"`
	// StopPolicy is Hold or HoldAndDrain if the team is stopped. Queues are those beside QueueName.
	StopPolicy string   `json:"stopPolicy,omitempty"`
	Queues     []Queue  `json:"queues,omitempty"`
	Users      []string `json:"users,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	Quota      Quota    `json:"quota"`
}

// Queue is another LocalQueue of a team.
type Queue struct {
	Name       string `json:"name"`
	StopPolicy string `json:"stopPolicy,omitempty"`
}

// SlackQueue is a ClusterQueue whose quota belongs to no team.
type SlackQueue struct {
	Name string `json:"name"`
	// Cohort is that which the chart takes if the file has none.
	Cohort string `json:"cohort"`
	Quota  Quota  `json:"quota"`
}

// Cohort is one cohort, with the quota that belongs to no team.
type Cohort struct {
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"`
	Quota  Quota  `json:"quota,omitempty"`
}

// Flavor is a kind of nodes.
type Flavor struct {
	Name     string            `json:"name"`
	Capacity map[string]Amount `json:"capacity,omitempty"`
}

// Quota has a share for each resource in each flavor.
type Quota map[string]map[string]Share

// Share is the quota of one resource in one flavor.
type Share struct {
	Nominal        Amount  `json:"nominal"`
	BorrowingLimit *Amount `json:"borrowingLimit,omitempty"`
	LendingLimit   *Amount `json:"lendingLimit,omitempty"`
}

// UnmarshalJSON also takes an amount without limits.
func (s *Share) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), "{") {
		type plain Share
		return json.Unmarshal(data, (*plain)(s))
	}
	*s = Share{}
	return s.Nominal.UnmarshalJSON(data)
}

func (s Share) String() string {
	text := s.Nominal.String()
	if s.BorrowingLimit != nil {
		text += ", borrows at most " + s.BorrowingLimit.String()
	}
	if s.LendingLimit != nil {
		text += ", lends at most " + s.LendingLimit.String()
	}
	return text
}

// same reports whether both are worth the same.
func (s Share) same(other Share) bool {
	return s.Nominal.Cmp(other.Nominal.Quantity) == 0 && sameLimit(s.BorrowingLimit, other.BorrowingLimit) && sameLimit(s.LendingLimit, other.LendingLimit)
}

func sameLimit(a, b *Amount) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Cmp(b.Quantity) == 0)
}

// Amount is an amount of a resource, which files have as a number or as text.
type Amount struct{ resource.Quantity }

// UnmarshalJSON takes numbers and text.
func (a *Amount) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%q is not an amount", text)
	}
	a.Quantity = quantity
	return nil
}

func (a Amount) String() string { return a.Quantity.String() }

// Read returns the teams in values with the chart's defaults.
func Read(values map[string]any) (Teams, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return Teams{}, fmt.Errorf("cannot read the teams: %w", err)
	}
	var all struct {
		Teams
		Cohort string `json:"cohort"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return Teams{}, fmt.Errorf("cannot read the teams: %w", err)
	}
	type owner struct {
		Cohort *string `json:"cohort"`
	}
	var own struct {
		Teams       []owner `json:"teams"`
		SlackQueues []owner `json:"slackQueues"`
	}
	if err := json.Unmarshal(text, &own); err != nil {
		return Teams{}, fmt.Errorf("cannot read the teams: %w", err)
	}
	for i := range all.Teams.Teams {
		t := &all.Teams.Teams[i]
		t.Namespace, t.QueueName = cmp.Or(t.Namespace, t.Name), cmp.Or(t.QueueName, "default-queue")
		if own.Teams[i].Cohort == nil {
			t.Cohort = all.Cohort
		}
	}
	for i := range all.SlackQueues {
		if own.SlackQueues[i].Cohort == nil {
			all.SlackQueues[i].Cohort = all.Cohort
		}
	}
	return all.Teams, nil
}

// Names are those of the teams, in the order of the file.
func (t Teams) Names() []string {
	var names []string
	for _, team := range t.Teams {
		names = append(names, team.Name)
	}
	return names
}

// Find returns the team of a name, or an UnknownError.
func (t Teams) Find(name string) (Team, error) {
	for _, team := range t.Teams {
		if team.Name == name {
			return team, nil
		}
	}
	return Team{}, UnknownError{What: "team", Name: name, Known: t.Names()}
}

// SlackNames are those of the slack queues, in the order of the file.
func (t Teams) SlackNames() []string {
	var names []string
	for _, queue := range t.SlackQueues {
		names = append(names, queue.Name)
	}
	return names
}

// UnknownError is a name that is not in the file.
type UnknownError struct {
	What, Name string
	// Known are the names that are.
	Known []string
}

func (e UnknownError) Error() string {
	return fmt.Sprintf("there is no %s %q in the file", e.What, e.Name)
}
