// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/changes"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/preflight"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/wait"
)

// Installer installs or upgrades the platform and, optionally, the teams.
type Installer struct {
	Cluster  access.Cluster
	Platform helmrelease.Release
	// Teams is the release of the teams, or nil. An upgrade without values for it keeps its
	// current values, if it is installed.
	Teams *helmrelease.Release
	// ResetValues makes an upgrade discard the platform's current values.
	ResetValues bool
	// TakeOwnership makes the releases adopt objects that they do not own.
	TakeOwnership bool
	// ResumeInterrupted takes over a release on which another command may still be working.
	ResumeInterrupted bool
	// DryRun stops after the check.
	DryRun bool
	// Diff gets what would change in the objects of each release, after the check. It implies DryRun.
	Diff io.Writer
	// Timeout limits each wait; 0 means helmrelease.DefaultTimeout.
	Timeout  time.Duration
	Progress helmrelease.Progress
}

// ErrInterrupted is returned if an installation is interrupted.
var ErrInterrupted = errors.New("interrupted")

// Install installs what is missing, and resumes an interrupted run.
func (i Installer) Install(ctx context.Context) ([]helmrelease.Outcome, error) {
	return i.run(ctx, install)
}

// Upgrade upgrades what is installed. Current values are kept unless new ones are given.
func (i Installer) Upgrade(ctx context.Context) ([]helmrelease.Outcome, error) {
	return i.run(ctx, upgrade)
}

// Ensure installs or upgrades, whichever is needed.
func (i Installer) Ensure(ctx context.Context) ([]helmrelease.Outcome, error) {
	return i.run(ctx, ensure)
}

// Check returns what prevents an installation, and what is unusual but may be intended. It
// changes nothing.
func (i Installer) Check(ctx context.Context) (problems, unusual []string, err error) {
	j, err := i.begin(install)
	if err != nil {
		return nil, nil, err
	}
	return j.find(ctx)
}

// step is a step of an installation. It can be repeated after an interruption.
type step struct {
	name string
	do   func(context.Context) error
}

func (i Installer) run(ctx context.Context, v verb) ([]helmrelease.Outcome, error) {
	j, err := i.begin(v)
	if err != nil {
		return nil, err
	}
	orElse := ""
	if v == install { // but not after an upgrade: the platform was there before
		orElse = ", or run 'mlbatch uninstall' to remove it"
	}
	if err := walk(ctx, j.steps(), j.Progress, orElse); err != nil {
		return nil, err
	}
	var done []helmrelease.Outcome
	for _, d := range j.all {
		done = append(done, helmrelease.Outcome{Release: d.Name, Namespace: d.Namespace, Version: d.chart.Version, Done: string(d.move)})
	}
	return done, nil
}

// walk runs the steps in order and prints their names. The first one changes nothing. If a
// later one is interrupted, the error ends with orElse.
func walk(ctx context.Context, steps []step, progress helmrelease.Progress, orElse string) error {
	for n, s := range steps {
		fmt.Fprintf(progress, "[%d/%d] %s\n", n+1, len(steps), s.name)
		err := s.do(ctx)
		if ctx.Err() != nil && n == 0 {
			return fmt.Errorf("%w in step 1 of %d, before anything was changed: run the same command again", ErrInterrupted, len(steps))
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w in step %d of %d; completed steps are kept: run the same command again to resume%s", ErrInterrupted, n+1, len(steps), orElse)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// job is one run of the installer.
type job struct {
	Installer
	verb verb
	api  access.API
	// all has the releases in the order in which they are installed, the platform first.
	all []*delivery
}

func (i Installer) begin(v verb) (*job, error) {
	if i.Timeout == 0 {
		i.Timeout = helmrelease.DefaultTimeout
	}
	if i.Progress == nil {
		i.Progress = io.Discard
	}
	j := &job{Installer: i, verb: v}
	var err error
	if j.api, err = i.Cluster.Connect(); err != nil {
		return nil, err
	}
	releases := []helmrelease.Release{i.Platform}
	if i.Teams != nil {
		releases = append(releases, *i.Teams)
	}
	for _, r := range releases {
		d, err := open(r, i.Cluster)
		if err != nil {
			return nil, err
		}
		d.takeOwnership, d.killed = i.TakeOwnership, i.ResumeInterrupted
		j.add(d)
	}
	return j, nil
}

// add adds a release. An upgrade keeps the values of the platform, and those of the teams
// unless a file replaces them.
func (j *job) add(d *delivery) {
	first, asTheyAre := len(j.all) == 0, len(d.Values) == 0
	if j.verb == upgrade && (first && !j.ResetValues || !first && asTheyAre) {
		if !first && d.Last == nil {
			if err := d.CheckNamespace("the release "+d.Name, "--teams-namespace"); err != nil {
				fmt.Fprintln(j.Progress, "warning:", err)
			}
			return
		}
		d.keepValues()
	}
	j.all = append(j.all, d)
}

func (j *job) steps() []step {
	platform := j.all[0]
	all := []step{{"checking the cluster and the values", j.check}}
	if j.Diff != nil {
		return append(all, step{"comparing with the last revisions", j.compare})
	}
	if j.DryRun {
		return all
	}
	all = append(all,
		step{named(platform), j.deliverPlatform},
		step{"waiting for CRDs and pods", func(ctx context.Context) error {
			return wait.Ready(ctx, j.api, platform.objects, j.Timeout, j.Progress)
		}},
		step{"probing all webhooks", j.ask},
	)
	for _, d := range j.all[1:] {
		all = append(all, step{named(d), d.carryOut})
	}
	return all
}

// compare writes what would change.
func (j *job) compare(context.Context) error {
	for _, d := range j.all {
		var last []helmrelease.Object
		from := "not installed"
		if revision := cmp.Or(d.Complete, d.Last); revision != nil {
			var err error
			if last, err = helmrelease.Decode(revision.Manifest); err != nil {
				return err
			}
			from = revision.Chart.Metadata.Version
		}
		fmt.Fprintf(j.Diff, "release %s: %s → %s\n", d.Name, from, d.chart.Version)
		changes.Write(j.Diff, changes.Between(plain(last), plain(d.objects)))
	}
	return nil
}

func plain(objects []helmrelease.Object) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, o := range objects {
		all = append(all, o.Unstructured)
	}
	return all
}

// deliverPlatform also drops the conversion webhooks of parts that were disabled.
func (j *job) deliverPlatform(ctx context.Context) error {
	platform := j.all[0]
	if err := platform.carryOut(ctx); err != nil {
		return err
	}
	return platform.DropConversions(ctx, j.api, platform.objects, j.Progress)
}

func (j *job) ask(ctx context.Context) error {
	questions, err := wait.ProbesFor(j.all[0].objects, j.Platform.Namespace)
	if err != nil {
		return err
	}
	return wait.Webhooks(ctx, j.api.Config, questions, j.Timeout, j.Progress)
}

func named(d *delivery) string {
	return fmt.Sprintf("release %s %s in namespace %s", d.Name, d.chart.Version, d.Namespace)
}

// check runs the preflight checks and decides the move of each release. It changes nothing.
func (j *job) check(ctx context.Context) error {
	refusals, warnings, err := j.find(ctx)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintln(j.Progress, "warning:", w)
	}
	if len(refusals) > 0 {
		return failed(refusals)
	}
	return j.decide()
}

// find runs the preflight checks.
func (j *job) find(ctx context.Context) (refusals, warnings []string, err error) {
	if err := j.look(ctx); err != nil {
		return nil, nil, err
	}
	facts, err := j.facts(ctx, j.api, j.all)
	if err != nil {
		return nil, nil, err
	}
	refusals, warnings = preflight.Find(facts)
	return refusals, warnings, nil
}

// look observes the releases and their namespaces, each namespace only once.
func (j *job) look(ctx context.Context) error {
	for n, d := range j.all {
		if err := d.look(ctx, j.api); err != nil {
			return err
		}
		if err := d.observeOtherNamespaces(ctx, j.api); err != nil {
			return err
		}
		if n > 0 && d.Namespace == j.all[0].Namespace {
			continue
		}
		if err := d.observeNamespace(ctx, j.api); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) decide() error {
	for n, d := range j.all {
		v := j.verb
		if n > 0 && v == upgrade {
			v = ensure // an upgrade may add the teams
		}
		if err := d.decide(v); err != nil {
			return err
		}
		if d.move == resume {
			fmt.Fprintf(j.Progress, "  the release %s was not completed; resuming the operation of %s\n", d.Name, d.Last.Info.LastDeployed.Local().Format("15:04"))
		}
	}
	return nil
}

// failed returns an error with one sentence, or with a list of several.
func failed(sentences []string) error {
	if len(sentences) == 1 {
		return errors.New(sentences[0])
	}
	return fmt.Errorf("%d checks failed:\n  %s", len(sentences), strings.Join(sentences, "\n  "))
}
