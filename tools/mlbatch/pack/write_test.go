// SPDX-License-Identifier: Apache-2.0

package pack_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/pack"
)

// odd are pieces of strings that some reader or writer of YAML takes for something else.
var odd = []string{
	"a", " ", "\n", "\t", "\r", "#", ": ", "- ", "'", `"`, "\\", "%", "&", "*", "!", "|", ">", "<", "{", "]", "0", "1", "_", ".", "e", "x", "on", "null", "~",
	"---", "...", "\x00", "\x7f", "\u0085", "\u2028", "\ufeff", "é", "😀", "2026-01-01", "true",
}

func drawString(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(odd), 0, 8).Draw(t, "pieces"), "")
}

// What kubectl reads, with sigs.k8s.io/yaml, is what was to be written.
func TestKubectlReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.MapOfN(rapid.Custom(drawString), rapid.Custom(drawString), 0, 4).Draw(t, "data")
		raw, err := json.Marshal(map[string]any{"data": data, "count": rapid.Int64().Draw(t, "count"), "share": rapid.Float64().Draw(t, "share")})
		if err != nil {
			t.Fatal(err)
		}
		aw := &v1beta2.AppWrapper{Spec: v1beta2.AppWrapperSpec{Components: []v1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}}}}
		inYAML, err := pack.YAML(aw)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := sigsyaml.YAMLToJSONStrict(inYAML)
		if err != nil {
			t.Fatalf("%v:\n%s", err, inYAML)
		}
		inJSON, err := pack.JSON(aw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decoded(t, inJSON), decoded(t, asJSON)); diff != "" {
			t.Fatalf("%s\n%s", diff, inYAML)
		}
	})
}

func decoded(t *rapid.T, text []byte) (fields map[string]any) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
