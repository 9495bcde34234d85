// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/tools/artifacts/atomicfile"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamschart"
	"github.com/mlbatch/mlbatch/tools/mlbatch/teamsfile"
)

// teamChanger has the flags of the verbs that change the file.
type teamChanger struct {
	teamFlags
	dryRun   bool
	settings teamsfile.Settings
	cohort   string
	weight   float64
	stop     string
}

func (t *teamChanger) bind(cmd *cobra.Command) *cobra.Command {
	t.teamFlags.bind(cmd)
	cmd.Flags().BoolVar(&t.dryRun, "dry-run", false, "show what changes, and write nothing")
	return cmd
}

// bindSettings adds the flags of add and set.
func (t *teamChanger) bindSettings(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&t.cohort, "cohort", "", "cohort of the team, instead of that of the whole file; --cohort= for none")
	cmd.Flags().Float64Var(&t.weight, "weight", 1, "share of the quota that can be borrowed, relative to the other teams")
	cmd.Flags().StringVar(&t.stop, "stop-policy", "None", "Hold admits no more work of the team, HoldAndDrain also evicts what runs, and None ends both")
	return t.bind(cmd)
}

const quotaArguments = "[FLAVOR:]RESOURCE=AMOUNT[,borrowingLimit=AMOUNT][,lendingLimit=AMOUNT]"

func teamAddCommand() *cobra.Command {
	var t teamChanger
	cmd := &cobra.Command{
		Use:   "add TEAM [FLAVOR:]RESOURCE=AMOUNT…",
		Short: "Add a team to the end of the file",
		Long: "Add a team with its quota to the end of the file. Write quota as\n" + quotaArguments + ".\n" +
			"The flavor can be left out if the file has only one. What the chart would refuse is not written.",
		Example: "  mlbatch team add language h100:cpu=320 h100:memory=4Ti h100:nvidia.com/gpu=32,lendingLimit=16 --group=language-edit-group",
		Args:    teamAndQuota("add TEAM [FLAVOR:]RESOURCE=AMOUNT…", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd, args, teamsfile.File.Add)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&t.settings.Users.Add, "user", nil, "member of the team; may be repeated")
	flags.StringArrayVar(&t.settings.Groups.Add, "group", nil, "group whose members are members of the team; may be repeated")
	flags.StringVar(&t.settings.Namespace, "namespace", "", "namespace of the team (default: its name)")
	flags.BoolVar(&t.settings.Existing, "existing-namespace", false, "the namespace exists already, with the label mlbatch-team-namespace=true")
	flags.StringVar(&t.settings.QueueName, "queue", "", "name of the team's queue (default: default-queue)")
	return t.bindSettings(cmd)
}

func teamSetCommand() *cobra.Command {
	var t teamChanger
	cmd := &cobra.Command{
		Use:   "set TEAM [FLAVOR:]RESOURCE=AMOUNT…",
		Short: "Change the quota, cohort, weight or members of a team of the file, or stop it",
		Long: "Change a team of the file. Write quota as " + quotaArguments + ".\n" +
			"What is left out stays as it is; 'none' removes a limit, or a resource. The flavor can be left out if the file has\n" +
			"only one. Teams that share their quota with an anchor keep what they have. What the chart would refuse is not written.",
		Example: "  mlbatch team set vision h100:nvidia.com/gpu=40,lendingLimit=none --weight=2",
		Args:    teamAndQuota("set TEAM [FLAVOR:]RESOURCE=AMOUNT…", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd, args, teamsfile.File.Set)
		},
		ValidArgsFunction: t.complete(teamsfile.Teams.Names),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&t.settings.Users.Add, "add-user", nil, "new member of the team; may be repeated")
	flags.StringArrayVar(&t.settings.Users.Remove, "remove-user", nil, "member that leaves the team; may be repeated")
	flags.StringArrayVar(&t.settings.Groups.Add, "add-group", nil, "new group of the team; may be repeated")
	flags.StringArrayVar(&t.settings.Groups.Remove, "remove-group", nil, "group that leaves the team; may be repeated")
	return t.bindSettings(cmd)
}

func teamRemoveCommand() *cobra.Command {
	var t teamChanger
	return t.bind(&cobra.Command{
		Use:     "remove TEAM",
		Example: "  mlbatch team remove vision",
		Short:   "Remove a team from the file",
		Long: "Remove a team from the file, with the comments directly above it. The upgrade that follows keeps the team's\n" +
			"namespace, queues, work and quota; docs/teams.md says how to remove them for good.",
		Args:              oneTeam("remove TEAM"),
		ValidArgsFunction: t.complete(teamsfile.Teams.Names),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd, args, func(f teamsfile.File, all teamsfile.Teams, name string, _ teamsfile.Settings) (teamsfile.File, error) {
				return f.Remove(all, name)
			})
		},
	})
}

// teamAndQuota wants the name of a team, and what to change.
func teamAndQuota(usage string, flagsSuffice bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		changed := slices.ContainsFunc([]string{"cohort", "weight", "stop-policy", "add-user", "remove-user", "add-group", "remove-group"}, cmd.Flags().Changed)
		switch {
		case len(args) == 0 || args[0] == "" || strings.Contains(args[0], "="):
			return errors.New("name one team: mlbatch team " + usage)
		case len(args) == 1 && (!flagsSuffice || !changed):
			return fmt.Errorf("say which quota team %q gets: mlbatch team %s", args[0], usage)
		}
		return nil
	}
}

// teamResult is what programs get of a change.
type teamResult struct {
	File    string                 `json:"file"`
	Team    string                 `json:"team"`
	Changed bool                   `json:"changed"`
	DryRun  bool                   `json:"dryRun,omitempty"`
	Removed bool                   `json:"removed,omitempty"`
	Quota   []teamsfile.Difference `json:"items"`
}

type teamEdit func(teamsfile.File, teamsfile.Teams, string, teamsfile.Settings) (teamsfile.File, error)

func (t teamChanger) run(cmd *cobra.Command, args []string, edit teamEdit) error {
	if err := t.readSettings(cmd, args[1:]); err != nil {
		return err
	}
	file, before, err := t.read(cmd)
	if err != nil {
		return err
	}
	changed, err := edit(file, before, args[0], t.settings)
	if err != nil {
		return nearby(err)
	}
	after, err := t.accepted(changed)
	if err != nil {
		return err
	}
	result := teamResult{t.path, args[0], !changed.Same(file), t.dryRun, len(after.Teams) < len(before.Teams), append([]teamsfile.Difference{}, teamsfile.Differences(before, after)...)}
	if result.Changed && !t.dryRun {
		if err := replaceFile(t.path, file.Bytes(), changed.Bytes()); err != nil {
			return err
		}
	}
	printNotes(cmd.ErrOrStderr(), unusual(before, t.settings))
	return t.report(cmd, result)
}

func (t *teamChanger) readSettings(cmd *cobra.Command, quota []string) error {
	for _, text := range quota {
		a, err := teamsfile.ParseAssignment(text)
		if err != nil {
			return err
		}
		t.settings.Quota = append(t.settings.Quota, a)
	}
	if cmd.Flags().Changed("cohort") {
		t.settings.Cohort = &t.cohort
	}
	if cmd.Flags().Changed("weight") {
		t.settings.Weight = &t.weight
	}
	if cmd.Flags().Changed("stop-policy") {
		t.settings.StopPolicy = &t.stop
	}
	return nil
}

// accepted returns the teams of a changed file, or why the chart refuses it.
func (t teamChanger) accepted(file teamsfile.File) (teamsfile.Teams, error) {
	chart, err := teamschart.Load()
	if err != nil {
		return teamsfile.Teams{}, err
	}
	all, refused, err := judge(chart, file)
	if refused != nil {
		return teamsfile.Teams{}, fmt.Errorf("%s is not changed, because the chart would refuse it: %w", t.path, refused)
	}
	return all, err
}

func (t teamChanger) report(cmd *cobra.Command, r teamResult) error {
	progress := cmd.ErrOrStderr()
	switch {
	case !r.Changed:
		fmt.Fprintf(progress, "%s is as wanted already: nothing is written\n", r.File)
	case r.DryRun:
		fmt.Fprintf(progress, "dry run: %s is not changed\n", r.File)
	default:
		fmt.Fprintf(progress, "%s is changed; 'mlbatch upgrade --teams %[1]s' applies it\n", r.File)
	}
	if r.Removed {
		fmt.Fprintf(progress, "note: the cluster keeps the namespace, queues, work and quota of team %s until you delete them (docs/teams.md)\n", r.Team)
	}
	out := cmd.OutOrStdout()
	return t.output.print(out, "TeamChange", r, func() error {
		if len(r.Quota) == 0 {
			fmt.Fprintln(progress, "no quota changes")
			return nil
		}
		return teamsfile.WriteDifferences(out, r.Quota, "BEFORE", "AFTER")
	})
}

// unusual names new words that are near known ones. The chart takes them.
func unusual(all teamsfile.Teams, s teamsfile.Settings) []string {
	var notes []string
	check := func(what, word string, known []string) {
		near := similar(word, known)
		note := fmt.Sprintf("the %s %s is new in the file: did you mean %s?", what, word, strings.Join(near, " or "))
		if len(near) > 0 && !slices.Contains(known, word) && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	for _, a := range s.Quota {
		check("resource", a.Resource, all.Resources())
	}
	if s.Cohort != nil && *s.Cohort != "" {
		check("cohort", *s.Cohort, all.CohortNames())
	}
	return notes
}

// replaceFile writes a file as a whole, unless someone else has changed it meanwhile. A link stays a link.
func replaceFile(path string, old, text []byte) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("cannot write the teams: %w", err)
	}
	if now, err := os.ReadFile(target); err != nil || !bytes.Equal(now, old) {
		return fmt.Errorf("%s has changed meanwhile: run the command again", path)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("cannot write the teams: %w", err)
	}
	if err := atomicfile.Write(target, info.Mode().Perm(), text); err != nil {
		return fmt.Errorf("cannot write the teams: %w", err)
	}
	return nil
}
