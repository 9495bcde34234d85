// SPDX-License-Identifier: Apache-2.0

package runplan_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/controller/runschema"
	"github.com/mlbatch/mlbatch/test/patience"
)

var honest = strings.Fields(`0 1 8 40 1000000000000000
	"0" "1" "+1" "007" "1." "1.5" ".5" "0.000000001" "999999999999999" "100m" "1500u" "9n" "1k" "16M" "1.5G" "2T" "1P" "1E"
	"1Ki" ".5Gi" "1.5Gi" "16Gi" "2Ti" "1Pi" "1Ei" "999999999999999Ei" "1e3" "1E3" "+1.5e+3" "5e-1" "1e99" "1e-99" "0e99" "123456789012345.123456789e-12"`)

// Kubernetes cannot decode the first of these, and would be busy with the others for long.
var malicious = strings.Fields(`"1e1.5" "1e.5" "1e5." "1e1.5e1" "1e" "1e+" "e1" "." "" "many" "1\u0020" "\u00201" "1\n" "1e3\n" "0x1" "1_000" "1,5" "½" "١" "NaN" "Inf"
	-1 "-1" "-1Gi" "-0" 1000000000000001 9223372036854775808 1e300 1e-300 1.5 true null [] {}
	"1e100" "1e2000000000" "1e-2000000000" "1e99999999999999999999" "1E+2000000000" "1e-0000000001" "0e2000000000" ".5e2000000000"
	"1000000000000000" "0.0000000001" "1000000000000000e1" "1000000000000000Gi"`)

func TestAmountsAreStoredOnlyIfTheyCanBePlanned(t *testing.T) {
	schema := compiled(t)
	for _, amount := range honest {
		if !storedAndPlanned(t, schema, amount) {
			t.Errorf("%s is refused", amount)
		}
	}
	digits := strings.Repeat("9", 1<<20)
	for _, amount := range append(malicious, strconv.Quote(digits), strconv.Quote(digits+"e1"), strconv.Quote("."+digits+"e-1")) {
		if storedAndPlanned(t, schema, amount) {
			t.Errorf("%.60s is stored", amount)
		}
	}
	number := rapid.StringMatching(`([0-9]{1,20}|-?[0-9]{1,3})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?`)
	text := rapid.StringMatching(`[+-]?([0-9]{1,20}(\.[0-9]{0,12})?|\.[0-9]{1,12})([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]{1,11}(\.[0-9]?)?|\.[0-9]))?`)
	rapid.Check(t, func(t *rapid.T) {
		storedAndPlanned(t, schema, rapid.OneOf(number, rapid.Map(text, strconv.Quote)).Draw(t, "amount"))
	})
}

// storedAndPlanned is false if the API server refuses an amount, in JSON, wherever it stands. It
// fails if one is stored with which the controller cannot work.
func storedAndPlanned(t failer, schema runschema.Schema, amount string) bool {
	t.Helper()
	manifests := []string{
		`{"kind": "Run", "metadata": {"name": "a"}, "spec": {"application": {"name": "a"}, "size": "own", "resources": {"cpu": AMOUNT}}}`,
		`{"kind": "Run", "metadata": {"name": "a"}, "spec": {"application": {"name": "a"}, "size": "own", "resources": {"nvidia.com/gpu": AMOUNT}}}`,
		`{"kind": "RunSizeConfiguration", "metadata": {"name": "a"}, "spec": {"config": {"own": {"workers": 1, "cpu": AMOUNT, "memory": "1Gi", "gpu": 0}}}}`,
		`{"kind": "RunSizeConfiguration", "metadata": {"name": "a"}, "spec": {"config": {"own": {"workers": 1, "cpu": 1, "memory": AMOUNT, "gpu": 0}}}}`,
		`{"kind": "RunSizeConfiguration", "metadata": {"name": "a"}, "spec": {"config": {"own": {"workers": 1, "cpu": 1, "memory": 1, "gpu": 0, "resources": {"a.b/c": AMOUNT}}}}}`,
	}
	count := 0
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		text := strings.Replace(strings.Replace(manifest, "{", `{"apiVersion": "codeflare.dev/v1alpha1", `, 1), "AMOUNT", amount, 1)
		if object.UnmarshalJSON([]byte(text)) != nil {
			continue
		}
		created, err := schema.Create(object)
		if err != nil {
			continue
		}
		count++
		inTime(t, amount, func() error { return decodedAndPlanned(created) })
	}
	if count != 0 && count != len(manifests) {
		t.Fatalf("%.60s is stored in %d places of %d", amount, count, len(manifests))
	}
	return count > 0
}

// inTime does not wait for what does not end.
func inTime(t failer, amount string, work func() error) {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- work() }()
	select {
	case err := <-result:
		if err != nil {
			t.Fatalf("%.60s is stored, but %v", amount, err)
		}
	case <-time.After(patience.For(5 * time.Second)): // a millisecond, on a machine that does nothing else
		t.Fatalf("%.60s is stored, and nobody can work with it", amount)
	}
}

// decodedAndPlanned reads an object as informers do.
func decodedAndPlanned(created *unstructured.Unstructured) error {
	in := oneRun()
	text, err := created.MarshalJSON()
	if err != nil {
		return err
	}
	var into any = in.Run
	if created.GetKind() != v1alpha1.RunKind {
		into = &in.Sizes[0]
	}
	if err := json.Unmarshal(text, into); err != nil {
		return err
	}
	if planned, _ := runplan.Plan(in); planned != nil {
		_, err = json.Marshal(planned)
	}
	return err
}

// oneRun is of a shell Application and of a size with the name own.
func oneRun() runplan.Input {
	return runplan.Input{
		Run: &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.RunSpec{Size: "own", Priority: v1alpha1.PriorityNormal}},
		Application: &v1alpha1.Application{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec:       v1alpha1.ApplicationSpec{API: v1alpha1.APIShell, Image: "digits:1", Command: "date"},
		},
		Sizes: []v1alpha1.RunSizeConfiguration{{Spec: v1alpha1.RunSizeConfigurationSpec{Config: map[string]v1alpha1.Size{
			"own": {Workers: 1, CPU: v1alpha1.MustParseAmount("1"), Memory: v1alpha1.MustParseAmount("1Gi")},
		}}}},
		Settings: settings(),
	}
}

// What is or was stored without a bound on its exponent is explained, and not computed with.
func TestAnAmountWithoutBoundsIsNotPlanned(t *testing.T) {
	for amount, planned := range map[string]bool{"1e15": true, "1P": true, "1e-3": true, "1000000000000001": false, "2e15": false, "1Ei": false, "1e2000000000": false} {
		in := oneRun()
		in.Run.Spec.Resources = v1alpha1.Resources{"memory": v1alpha1.MustParseAmount(amount)}
		inTime(t, amount, func() error {
			got, problems := runplan.Plan(in)
			if (got != nil) != planned {
				t.Errorf("%s is planned: %t", amount, !planned)
			}
			if !planned && (len(problems) != 1 || problems[0].Message != "there is no such amount of memory: it may be at most 1e15") {
				t.Errorf("of %s it says %v", amount, problems)
			}
			return nil
		})
	}
}
