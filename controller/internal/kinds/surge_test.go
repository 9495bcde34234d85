// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestNoPodIsMadeBesideThoseThatAreReplaced(t *testing.T) {
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	groups := schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	for name, row := range map[string]struct {
		kind      schema.GroupVersionKind
		spec, got string
	}{
		"a Deployment surges by default":          {deployments, `{}`, `{strategy: {rollingUpdate: {maxSurge: 0}}}`},
		"a share":                                 {deployments, `{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 50%, maxUnavailable: 10%}}}`, `{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 10%}}}`},
		"then one may be unavailable":             {deployments, `{strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}`, `{strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`},
		"also if the author says a share of none": {deployments, `{strategy: {rollingUpdate: {maxUnavailable: 0%}}}`, `{strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`},
		"however it is written":                   {deployments, `{strategy: {rollingUpdate: {maxUnavailable: 00%}}}`, `{strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`},
		"what is no share is left to others":      {deployments, `{strategy: {rollingUpdate: {maxUnavailable: "0"}}}`, `{strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: "0"}}}`},
		"Recreate never surges":                   {deployments, `{strategy: {type: Recreate}}`, `{strategy: {type: Recreate}}`},
		"a malformed strategy is left to others":  {deployments, `{strategy: fast}`, `{strategy: fast}`},
		"a malformed update is left to others":    {deployments, `{strategy: {rollingUpdate: fast}}`, `{strategy: {rollingUpdate: fast}}`},
		"groups surge if their author says so":    {groups, `{rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 2, maxUnavailable: 10%, partition: 3}}}`, `{rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 0, maxUnavailable: 1, partition: 3}}}`},
		"which they do not by a share of none":    {groups, `{rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 00%, maxUnavailable: 2}}}`, `{rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 00%, maxUnavailable: 2}}}`},
		"and not otherwise":                       {groups, `{rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 2}}}`, `{rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 2}}}`},
		"groups without a strategy":               {groups, `{replicas: 2}`, `{replicas: 2}`},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{"spec": decoded(t, row.spec)}
			For(row.kind).PrepareForQueue(object)
			if diff := cmp.Diff(encoded(t, decoded(t, row.got)), encoded(t, object["spec"])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	For(deployments).PrepareForQueue(map[string]any{}) // one without a spec is refused elsewhere
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// encoded has numbers as they are written, whatever Go type they have.
func encoded(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
