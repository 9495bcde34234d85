// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/setup"
)

func TestAnotherKubernetesHasItsCoscheduler(t *testing.T) {
	v, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	usual := setup.Minor(v.LocalCluster.Kubernetes)
	for minor := range v.LocalCluster.OtherKubernetes {
		other, err := v.On(minor)
		if err != nil {
			t.Fatal(err)
		}
		if got := setup.Minor(other.LocalCluster.Kubernetes); got != minor || other.LocalCluster.Minor != minor {
			t.Errorf("on %s runs %s", minor, got)
		}
		tag := ":" + v.Platform["coscheduler"].OtherKubernetes[minor]
		for _, image := range []string{other.Platform["coscheduler"].Image, other.Platform["coscheduler"].ControllerImage} {
			if !strings.HasSuffix(image, tag) || strings.Count(image, ":") != 1 {
				t.Errorf("on %s, the charts pull the tag %s, but it has %s", minor, tag, image)
			}
		}
	}
	for _, same := range []string{"", usual} {
		got, err := v.On(same)
		if diff := cmp.Diff(v, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", same, err, diff)
		}
	}
	again, err := setup.Load()
	if diff := cmp.Diff(again, v); diff != "" || err != nil {
		t.Errorf("On has changed the versions themselves: %v %s", err, diff)
	}
}

func TestAnUnknownKubernetesIsAnError(t *testing.T) {
	v := setup.Versions{LocalCluster: setup.LocalCluster{
		Kubernetes: "v1.34.4", OtherKubernetes: map[string]setup.OtherKubernetes{"1.37": {}, "1.30": {}},
	}}
	for _, minor := range []string{"1.29", "v1.30", "latest"} {
		_, err := v.On(minor)
		if want := "a local cluster runs no Kubernetes " + minor + ": choose one of 1.30, 1.37, 1.34"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
