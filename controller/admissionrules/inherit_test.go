// SPDX-License-Identifier: Apache-2.0

package admissionrules_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/given"
)

func TestANamespaceHasDefaults(t *testing.T) {
	const hang, retries = v1beta2.NoProgressGracePeriodDurationAnnotation, v1beta2.RetryLimitAnnotation
	for sentence, tc := range map[string]struct {
		namespace, sent, want map[string]string
		warnings              []string
	}{
		"who says nothing gets the default":          {namespace: map[string]string{hang: "30m"}, want: map[string]string{hang: "30m"}},
		"what the author says stays":                 {namespace: map[string]string{hang: "30m"}, sent: map[string]string{hang: "0s"}, want: map[string]string{hang: "0s"}},
		"even if it is wrong, so that it is refused": {namespace: map[string]string{hang: "30m"}, sent: map[string]string{hang: ""}, want: map[string]string{hang: ""}},
		"other annotations stay":                     {namespace: map[string]string{hang: "1d"}, sent: map[string]string{"a": "b"}, want: map[string]string{hang: "1d", "a": "b"}},
		"a namespace without defaults has none":      {namespace: map[string]string{"a": "b"}},
		"a wrong default is none": {namespace: map[string]string{hang: "soon"}, warnings: []string{
			"of the namespace, annotation " + hang + `: "soon" is not a duration such as "90s", "1h30m" or "7d"; it has no effect: tell an administrator`}},
		"of other annotations there is no default": {namespace: map[string]string{retries: "1"}, warnings: []string{
			"the annotation " + retries + " of the namespace has no effect: set it on each AppWrapper"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			aw := given.AppWrapper("a").Build()
			aw.Annotations = tc.sent
			admissionrules.Inherit(aw, tc.namespace)
			if diff := cmp.Diff(tc.want, aw.Annotations); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.warnings, admissionrules.WarningsOnInheritance(tc.namespace)); diff != "" {
				t.Errorf("warnings (-want +got)\n%s", diff)
			}
		})
	}
}
