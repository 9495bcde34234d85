// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/runplan"
)

// Datashim has one Dataset, of the group of its older versions: the other group does not exist. A Run
// that waits for another Dataset is looked at again.
func TestAnInputMayBeADatasetOfDatashim(t *testing.T) {
	for dataset, wants := range map[string]struct {
		datashim bool
		label    string
		again    bool
	}{
		"glue":  {true, `"dataset.0.id":"glue"`, false},
		"other": {true, "", true},
		"off":   {false, "", false},
	} {
		app := givenApplication()
		app.Spec.Inputs = []v1alpha1.Input{{Name: dataset}}
		api := fake.NewClientBuilder().WithScheme(scheme(t)).
			WithObjects(app, &v1alpha1.RunSizeConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: runplan.DefaultSizes().Spec}).Build()
		live := interceptor.NewClient(api, interceptor.Funcs{List: listOfDatashim(t)})
		r := &Reconciler{cached: api, live: live, now: time.Now, settings: runplan.Settings{Datashim: wants.datashim}}
		o := &observation{}
		o.Run = givenRun()
		if err := r.observeWork(t.Context(), o, &o.Snapshot); err != nil {
			t.Fatal(err)
		}
		component := ""
		for _, planned := range o.Plan.Planned {
			component = string(planned.AppWrapper.Spec.Components[0].Template.Raw)
		}
		if planned := component != ""; planned != (wants.label != "") || !strings.Contains(component, wants.label) || o.unwatched != wants.again {
			t.Errorf("%s: it is looked at again: %t, %v, and %s", dataset, o.unwatched, o.Plan.Problems, component)
		}
	}
}

func listOfDatashim(t *testing.T) func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
	return func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		gvk := list.GetObjectKind().GroupVersionKind()
		if gvk.Group == "datashim.io" {
			return &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
		}
		where := (&client.ListOptions{}).ApplyOptions(options).Namespace
		if gvk.String() != "com.ie.ibm.hpsys/v1alpha1, Kind=DatasetList" || where != theRun.Namespace {
			t.Errorf("%s is listed in %s", gvk, where)
		}
		glue := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "glue", UID: types.UID("u")}}
		list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{glue}
		return nil
	}
}
