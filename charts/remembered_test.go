// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/yaml"
)

// Most tests ask about the same releases, whose CRDs are large, and about the same policies. What follows is computed
// once for the same input. Nobody may change what is shared.

// renderings are the latest releases, by chart, Kubernetes and values.
var renderings = lru.New(16)

type rendering struct {
	release *release.Release
	err     error
}

// once remembers what render returns.
func once(kubernetes, name string, values map[string]any, render func() (*release.Release, error)) (*release.Release, error) {
	key := fmt.Sprintf("%s %s %#v", kubernetes, name, values)
	if known, is := renderings.Get(key); is {
		return known.(rendering).release, known.(rendering).err
	}
	made, err := render()
	if made != nil {
		made.Chart = nil // it is large, and no test reads it
	}
	renderings.Add(key, rendering{made, err})
	return made, err
}

type hash [sha256.Size]byte

// heads and bodies are documents as JSON, which is read many times faster than YAML.
var heads, bodies sync.Map

// head is what all objects have.
type head struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func headOf(t *testing.T, document string) (of head) {
	t.Helper()
	key := hash(sha256.Sum256([]byte(document)))
	known, is := heads.Load(key)
	if !is {
		if err := yaml.Unmarshal([]byte(document), &of); err != nil {
			t.Fatalf("cannot parse: %v\n%s", err, document)
		}
		known = must(json.Marshal(of))(t)
		heads.Store(key, known)
	}
	if err := json.Unmarshal(known.([]byte), &of); err != nil {
		t.Fatal(err)
	}
	return of
}

// readWhole reads a whole document.
func readWhole(t *testing.T, document string, into any) {
	t.Helper()
	key := hash(sha256.Sum256([]byte(document)))
	known, is := bodies.Load(key)
	if !is {
		known = must(yaml.YAMLToJSON([]byte(document)))(t)
		bodies.Store(key, known)
	}
	if err := json.Unmarshal(known.([]byte), into); err != nil {
		t.Fatalf("cannot read: %v\n%s", err, document)
	}
}
