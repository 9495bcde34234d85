// SPDX-License-Identifier: Apache-2.0

package accessreview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// A later review asks the same question, so that its answer may be remembered.
func TestARecordIsTheWholeIdentity(t *testing.T) {
	for name, user := range map[string]authenticationv1.UserInfo{
		"a member":          {Username: "ada", UID: "u-1", Groups: []string{"blue", `a "b" <c>`}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}}},
		"somebody without":  {Username: "eve"},
		"a service account": {Username: "system:serviceaccount:blue:nightly", UID: "u-2", Groups: []string{"system:serviceaccounts"}},
	} {
		record, err := Record(user)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Recorded(user.Username, user.UID, record)
		if diff := cmp.Diff(user, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
	for _, record := range []string{"", "[]", `{"groups": 1}`} {
		if _, err := Recorded("ada", "", record); err == nil {
			t.Errorf("%q is read", record)
		}
	}
}
