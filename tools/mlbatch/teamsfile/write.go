// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// WriteTable prints a row for each team and flavor, and likewise of slack queues in a table of their own.
func (t Teams) WriteTable(out io.Writer) error {
	rows := [][]string{{"TEAM", "NAMESPACE", "COHORT", "MEMBERS", "FLAVOR", "QUOTA"}}
	for _, team := range t.Teams {
		row := []string{team.Name, team.Namespace, team.Cohort, members(team)}
		for _, flavor := range t.order(team.Quota) {
			rows = append(rows, append(row[:4:4], flavor, amounts(team.Quota[flavor])))
		}
		if len(team.Quota) == 0 {
			rows = append(rows, append(row, "", ""))
		}
	}
	if err := printing.Table(out, rows); err != nil || len(t.SlackQueues) == 0 {
		return err
	}
	fmt.Fprintln(out)
	rows = [][]string{{"SLACK QUEUE", "COHORT", "FLAVOR", "QUOTA"}}
	for _, queue := range t.SlackQueues {
		for _, flavor := range t.order(queue.Quota) {
			rows = append(rows, []string{queue.Name, queue.Cohort, flavor, amounts(queue.Quota[flavor])})
		}
	}
	return printing.Table(out, rows)
}

// members counts those that the file names. A group has as many as the cluster's identity provider says.
func members(t Team) string {
	var parts []string
	for _, part := range []struct {
		count int
		one   string
	}{{len(t.Users), "user"}, {len(t.Groups), "group"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s%s", part.count, part.one, strings.Repeat("s", min(1, part.count-1))))
		}
	}
	return strings.Join(parts, ", ")
}

// order are the flavors of a quota as work tries them: in the order of the file. What the file does
// not list comes last.
func (t Teams) order(q Quota) []string {
	var listed []string
	for _, flavor := range t.Flavors {
		if _, has := q[flavor.Name]; has {
			listed = append(listed, flavor.Name)
		}
	}
	for _, flavor := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(listed, flavor) {
			listed = append(listed, flavor)
		}
	}
	return listed
}

func amounts(shares map[string]Share) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		parts = append(parts, name+" "+shares[name].Nominal.String())
	}
	return strings.Join(parts, ", ")
}

// WriteTeam prints everything about one team that has to do with quota and members.
func (t Teams) WriteTeam(out io.Writer, team Team) error {
	weight := "1"
	if team.Weight != nil {
		weight = strconv.FormatFloat(*team.Weight, 'g', -1, 64)
	}
	about := [][]string{
		{"Team", team.Name}, {"Namespace", team.Namespace}, {"Queue", team.QueueName}, {"Cohort", team.Cohort}, {"Weight", weight},
		{"Users", strings.Join(team.Users, ", ")}, {"Groups", strings.Join(team.Groups, ", ")},
	}
	if team.StopPolicy != "" {
		about = append(about, []string{"Stop policy", team.StopPolicy})
	}
	for _, queue := range team.Queues {
		about = append(about, []string{"Other queue", strings.TrimSpace(queue.Name + " " + queue.StopPolicy)})
	}
	if err := printing.Table(out, about); err != nil {
		return err
	}
	return t.writeQuota(out, team.Quota)
}

// WriteSlackQueue prints one slack queue. What it lends at most is what the file says. While nodes are bad, it lends
// less.
func (t Teams) WriteSlackQueue(out io.Writer, queue SlackQueue) error {
	if err := printing.Table(out, [][]string{{"Slack queue", queue.Name}, {"Cohort", queue.Cohort}}); err != nil {
		return err
	}
	return t.writeQuota(out, queue.Quota)
}

// writeQuota prints a row for each resource.
func (t Teams) writeQuota(out io.Writer, q Quota) error {
	fmt.Fprintln(out)
	rows := [][]string{{"FLAVOR", "RESOURCE", "QUOTA", "BORROWS AT MOST", "LENDS AT MOST"}}
	for _, flavor := range t.order(q) {
		for _, name := range slices.Sorted(maps.Keys(q[flavor])) {
			share := q[flavor][name]
			rows = append(rows, []string{flavor, name, share.Nominal.String(), limit(share.BorrowingLimit), limit(share.LendingLimit)})
		}
	}
	return printing.Table(out, rows)
}

func limit(a *Amount) string {
	if a == nil {
		return ""
	}
	return a.String()
}
