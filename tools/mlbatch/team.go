// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamschart"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

// teamFlags has the flags that all verbs of mlbatch team have.
type teamFlags struct {
	path   string
	output output
}

func (t *teamFlags) bind(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&t.path, "file", "f", "teams.yaml", "values file of the teams")
	t.output.bindTable(cmd.Flags())
	return cmd
}

func teamCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "team",
		Short: "Show and change the teams and their quota in the values file of the chart teams",
		Long: "Show and change the teams and their quota in the values file of the chart teams (docs/quota.md). Only 'mlbatch team\n" +
			"diff' asks the cluster, and none changes it: 'mlbatch upgrade --teams FILE' applies the file.",
	}
	cmd.AddCommand(teamListCommand(), teamShowCommand(), teamAddCommand(), teamSetCommand(), teamRemoveCommand(), teamDiffCommand())
	return cmd
}

func teamListCommand() *cobra.Command {
	var t teamFlags
	return t.bind(&cobra.Command{
		Use:     "list",
		Example: "  mlbatch team list --file teams.yaml",
		Short:   "List the teams and slack queues of the file with their quota",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, all, err := t.read(cmd)
			if err != nil {
				return err
			}
			if len(all.Teams) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "there are no teams in", t.path)
			}
			out := cmd.OutOrStdout()
			return t.output.print(out, "TeamList", all.Answer(), func() error { return all.WriteTable(out) })
		},
	})
}

func teamShowCommand() *cobra.Command {
	var t teamFlags
	return t.bind(&cobra.Command{
		Use:               "show TEAM",
		Example:           "  mlbatch team show vision",
		Short:             "Show the quota, limits and members of one team of the file, or one slack queue",
		Args:              oneTeam("show TEAM"),
		ValidArgsFunction: t.complete(shown),
		RunE: func(cmd *cobra.Command, names []string) error {
			_, all, err := t.read(cmd)
			if err != nil {
				return err
			}
			return t.show(cmd.OutOrStdout(), all, names[0])
		},
	})
}

// show prints a team, or else the slack queue of this name.
func (t teamFlags) show(out io.Writer, all teamsfile.Teams, name string) error {
	team, err := all.Find(name)
	if err == nil {
		return t.output.print(out, "Team", printing.Items[teamsfile.Team]{Items: []teamsfile.Team{team}}, func() error { return all.WriteTeam(out, team) })
	}
	if i := slices.Index(all.SlackNames(), name); i >= 0 {
		queue := all.SlackQueues[i]
		return t.output.print(out, "SlackQueue", printing.Items[teamsfile.SlackQueue]{Items: []teamsfile.SlackQueue{queue}}, func() error { return all.WriteSlackQueue(out, queue) })
	}
	return nearby(teamsfile.UnknownError{What: "team", Name: name, Known: shown(all)})
}

// shown are the names that show knows.
func shown(all teamsfile.Teams) []string { return slices.Concat(all.Names(), all.SlackNames()) }

// oneTeam wants one name.
func oneTeam(usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return errors.New("name one team: mlbatch team " + usage)
		}
		return nil
	}
}

// read returns the file, and its teams. What the chart refuses is a note: a file that is wrong can still be read.
func (t teamFlags) read(cmd *cobra.Command) (teamsfile.File, teamsfile.Teams, error) {
	file, err := t.parse()
	if err != nil {
		return teamsfile.File{}, teamsfile.Teams{}, err
	}
	chart, err := teamschart.Load()
	if err != nil {
		return teamsfile.File{}, teamsfile.Teams{}, err
	}
	all, refused, err := judge(chart, file)
	if err == nil && refused != nil {
		printNotes(cmd.ErrOrStderr(), []string{"the chart refuses " + t.path + " as it is: " + refused.Error()})
	}
	return file, all, err
}

func (t teamFlags) parse() (teamsfile.File, error) {
	data, err := os.ReadFile(t.path)
	if errors.Is(err, os.ErrNotExist) {
		return teamsfile.File{}, fmt.Errorf("there is no file %s: name the values file of the teams with --file (docs/quota.md shows one)", t.path)
	}
	if err != nil {
		return teamsfile.File{}, fmt.Errorf("cannot read the teams: %w", err)
	}
	file, err := teamsfile.Parse(data)
	if err != nil {
		return teamsfile.File{}, fmt.Errorf("cannot read %s: %w", t.path, err)
	}
	return file, nil
}

// judge returns the teams of a file, and why the chart refuses it. If the teams cannot even be read, the chart's
// sentence says better why.
func judge(chart teamschart.Chart, file teamsfile.File) (all teamsfile.Teams, refused, err error) {
	_, refused = chart.Render(file.Values())
	whole, err := chart.Whole(file.Values())
	if err == nil {
		all, err = teamsfile.Read(whole)
	}
	if err != nil && refused != nil {
		err = refused
	}
	return all, refused, err
}

// complete takes names from the file.
func (t *teamFlags) complete(names func(teamsfile.Teams) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		file, err := t.parse()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := teamsfile.Read(file.Values())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(all), cobra.ShellCompDirectiveNoFileComp
	}
}

// nearby adds to an error which names could have been meant, or which there are.
func nearby(err error) error {
	unknown := teamsfile.UnknownError{}
	if !errors.As(err, &unknown) || len(unknown.Known) == 0 {
		return err
	}
	if near := similar(unknown.Name, unknown.Known); len(near) > 0 {
		return fmt.Errorf("%w: did you mean %s?", err, strings.Join(near, " or "))
	}
	const most = 10
	known := slices.Clone(unknown.Known[:min(len(unknown.Known), most)])
	if len(unknown.Known) > most {
		known = append(known, "…")
	}
	return fmt.Errorf("%w: it has %s", err, strings.Join(known, ", "))
}
