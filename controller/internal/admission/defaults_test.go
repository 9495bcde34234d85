// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

func TestDefaultsOfANewAppWrapper(t *testing.T) {
	const queue, user, id = v1beta2.QueueNameLabel, v1beta2.UserLabel, v1beta2.UserIDLabel
	for name, tc := range map[string]struct {
		labels, want map[string]string
		defaultQueue string
	}{
		"without a queue it gets the default one":  {nil, map[string]string{queue: "default", user: "ada", id: "u-1"}, "default"},
		"without a default it stays without queue": {nil, map[string]string{user: "ada", id: "u-1"}, ""},
		"a queue of its own is kept": {
			map[string]string{queue: "mine"}, map[string]string{queue: "mine", user: "ada", id: "u-1"}, "default"},
		"an empty queue label is a choice too": {
			map[string]string{queue: ""}, map[string]string{queue: "", user: "ada", id: "u-1"}, "default"},
		"a borrowed identity is replaced": {
			map[string]string{user: "root", id: "0"}, map[string]string{user: "ada", id: "u-1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			aw := &v1beta2.AppWrapper{}
			aw.Labels = tc.labels
			setDefaults(aw, tc.defaultQueue, authenticationv1.UserInfo{Username: "ada", UID: "u-1"})
			if diff := cmp.Diff(tc.want, aw.Labels); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if aw.Spec.Suspend {
				t.Error("only Kueue may set suspend")
			}
		})
	}
}
