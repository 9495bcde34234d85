// SPDX-License-Identifier: Apache-2.0

package installer

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestStepsAreTakenInOrderAndNamed(t *testing.T) {
	var progress strings.Builder
	var done []string
	does := func(name string, err error) step {
		return step{name, func(context.Context) error { done = append(done, name); return err }}
	}
	failed := errors.New("no")
	err := walk(t.Context(), []step{does("look", nil), does("install", failed), does("wait", nil)}, &progress)
	if !errors.Is(err, failed) || strings.Join(done, " ") != "look install" {
		t.Errorf("%v after %q", err, done)
	}
	if got := progress.String(); got != "[1/3] look\n[2/3] install\n" {
		t.Errorf("it says %q", got)
	}
}

func TestWhoInterruptsHearsHowToGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := walk(ctx, []step{
		{"look", func(context.Context) error { return nil }},
		{"install", func(context.Context) error { cancel(); return errors.New("what Helm says then") }},
		{"wait", func(context.Context) error { t.Error("it goes on"); return nil }},
	}, &strings.Builder{})
	want := "interrupted in step 2 of 3; what is done stays: run the same command again to go on, or 'mlbatch uninstall' to take it away"
	if !errors.Is(err, ErrInterrupted) || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestSeveralObstaclesAreAList(t *testing.T) {
	if got := inTheWay([]string{"no Kueue"}).Error(); got != "no Kueue" {
		t.Errorf("one is %q", got)
	}
	if got := inTheWay([]string{"no Kueue", "no rights"}).Error(); got != "2 things are in the way:\n  no Kueue\n  no rights" {
		t.Errorf("two are %q", got)
	}
}
