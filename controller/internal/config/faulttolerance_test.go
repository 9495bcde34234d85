// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestTheDefaultsAreTheLifecycles(t *testing.T) {
	if diff := cmp.Diff(lifecycle.StandardDefaults(), Default().AppWrapper.Defaults()); diff != "" {
		t.Errorf("(-lifecycle +config)\n%s", diff)
	}
}

// Each setting has the same key in the file, and its value reaches the lifecycle.
func TestTheFileAndTheTableHaveTheSameSettings(t *testing.T) {
	c := Default().AppWrapper
	want := lifecycle.StandardDefaults()
	c.NodeHealth.Avoid, want.Avoid = Avoid{Nodes: 5, Period: Duration{time.Minute}}, lifecycle.Avoidance{Nodes: 5, Period: time.Minute}
	var inTable []string
	for i, p := range lifecycle.Periods() {
		inTable = append(inTable, p.Key)
		value := time.Duration(i+1) * time.Second
		*p.In(&want) = value
		setting(&c.FaultTolerance, p.Key).Set(reflect.ValueOf(Duration{value}))
	}
	for i, l := range lifecycle.Limits() {
		inTable = append(inTable, l.Key)
		value := int32(1000 + i)
		*l.In(&want) = value
		setting(&c.FaultTolerance, l.Key).Set(reflect.ValueOf(value))
	}
	c.Autopilot.MigrationLimit, want.MigrationLimit = 2000, 2000
	if diff := cmp.Diff(want, c.Defaults()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	inFile := keys(reflect.TypeFor[FaultTolerance](), "")
	slices.Sort(inTable)
	slices.Sort(inFile)
	if diff := cmp.Diff(inTable, inFile); diff != "" {
		t.Errorf("keys (-table +file)\n%s", diff)
	}
}

// setting returns the field with this key in the file.
func setting(f *FaultTolerance, key string) reflect.Value {
	all := reflect.ValueOf(f).Elem()
	for i := range all.NumField() {
		if all.Type().Field(i).Tag.Get("json") == key {
			return all.Field(i)
		}
	}
	return reflect.Value{}
}

// Until an annotation says otherwise, and at most as long as an annotation may ask for.
func TestAClusterMayKeepWhatHasFailed(t *testing.T) {
	c, _, err := Parse([]byte("appwrapper: {faultTolerance: {deletionOnFailureGracePeriod: 2h, gracePeriodCeiling: 3h}}"))
	if err != nil {
		t.Fatal(err)
	}
	hold := slices.IndexFunc(lifecycle.Periods(), func(p lifecycle.Setting[time.Duration]) bool { return p.Key == "deletionOnFailureGracePeriod" })
	for annotation, want := range map[string]time.Duration{"": 2 * time.Hour, "0s": 0, "1h": time.Hour, "7d": 3 * time.Hour} {
		given := map[string]string{}
		if annotation != "" {
			given[lifecycle.Periods()[hold].Annotation] = annotation
		}
		if got, _ := lifecycle.ParsePolicy(given, c.AppWrapper.Defaults()); got.DeletionOnFailureHold != want {
			t.Errorf("with the annotation %q failed work is kept for %s, and not for %s", annotation, got.DeletionOnFailureHold, want)
		}
	}
	if _, _, err := Parse([]byte("appwrapper: {faultTolerance: {deletionOnFailureGracePeriod: 25h}}")); err == nil {
		t.Error("a hold above the ceiling is accepted")
	}
}
