// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

func found(t *testing.T, c client.Client, namespace, name string) explain.Objects {
	t.Helper()
	objects, err := why.Find(t.Context(), c, why.Target{Namespace: namespace, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func forbidden(resource, why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(why))
}

func TestCancelDeletesTheWorkThatWasFound(t *testing.T) {
	for _, row := range []struct{ name, question, says string }{
		{"pulls", "Delete AppWrapper pulls in namespace blue, which is Running, and all that it has created?", "AppWrapper pulls was deleted in namespace blue\n"},
		{"train", "Delete PyTorchJob train in namespace blue, which is Admitted, and all that it has created?", "PyTorchJob train was deleted in namespace blue\n"},
	} {
		var deleted string
		c := cluster(t, interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			var all client.DeleteOptions
			all.ApplyOptions(options)
			deleted = o.GetName() + " " + string(*all.Preconditions.UID)
			return nil
		}})
		objects := found(t, c, "blue", row.name)
		var out bytes.Buffer
		err := work.Cancel(t.Context(), c, objects, &out)
		if question := work.Ending(objects); err != nil || out.String() != row.says || question != row.question || deleted != row.name+" uid-"+row.name {
			t.Errorf("got %q, %q, %s, %v", question, &out, deleted, err)
		}
	}
}

func TestWhatCannotBeCancelledIsASentence(t *testing.T) {
	for want, row := range map[string]struct {
		namespace, name string
		err             error
	}{
		"you may not delete appwrappers in namespace blue: ask an administrator for a role with this right": {"blue", "pulls", forbidden("appwrappers", "no role")},
		"cannot delete appwrappers in namespace blue: appwrappers is forbidden: a policy denied request":    {"blue", "pulls", forbidden("appwrappers", "a policy denied request")},
		"AppWrapper step belongs to Run study: use 'mlbatch cancel run/study'":                              {"red", "step", nil},
	} {
		c := cluster(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return row.err }})
		var out bytes.Buffer
		err := work.Cancel(t.Context(), c, found(t, c, row.namespace, row.name), &out)
		wording.OneSentence(t, out.String(), err, want)
	}
}

func TestRetryCreatesACopyOfWhatTheUserHasWritten(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	for _, name := range []string{"lost-2", "lost-3"} {
		var out bytes.Buffer
		if err := work.Retry(t.Context(), c, found(t, c, "red", "lost"), &out); err != nil || out.String() != "AppWrapper "+name+" was submitted in namespace red\n" {
			t.Fatalf("got %q, %v", &out, err)
		}
		aw := found(t, c, "red", name).AppWrapper
		wanted := map[string]string{"note": "mine", "codeflare.dev/retry-of": "lost"}
		if diff := cmp.Diff(wanted, aw.Annotations); diff != "" || aw.Labels["team"] != "red" || aw.Spec.Suspend || aw.Spec.Components[0].PodSetInfos != nil || aw.Status.Phase != "" {
			t.Errorf("%s is %+v", name, aw)
		}
		if _, tracked := aw.Labels["app.kubernetes.io/instance"]; tracked {
			t.Errorf("%s would be pruned: it has the labels %v", name, aw.Labels)
		}
		second := work.Retry(t.Context(), c, found(t, c, "red", "lost"), &out)
		wording.OneSentence(t, "", second, "AppWrapper "+name+" has resources whose names another one would need: wait for its end with 'mlbatch wait "+name+"', or cancel it")
		aw.Status.Phase = v1beta2.AppWrapperFailed
		if err := c.Update(t.Context(), aw); err != nil {
			t.Fatal(err)
		}
	}
	copied := found(t, c, "red", "lost-3").AppWrapper
	copied.Status.Phase = v1beta2.AppWrapperFailed
	var out bytes.Buffer
	if err := work.Retry(t.Context(), c, explain.Objects{AppWrapper: copied}, &out); err != nil || out.String() != "AppWrapper lost-4 was submitted in namespace red\n" {
		t.Errorf("got %q, %v", &out, err)
	}
}

func TestWhatCannotBeRepeatedIsASentence(t *testing.T) {
	for want, row := range map[string]struct {
		namespace, name string
		err             error
	}{
		"PyTorchJob train is not wrapped: submit it again from its manifest, or wrap it with 'mlbatch pack'":           {"blue", "train", nil},
		"AppWrapper pulls has not ended: it is Running: wait for its end with 'mlbatch wait pulls'":                    {"blue", "pulls", nil},
		"AppWrapper done keeps its resources, whose names another one would need: 'mlbatch why done' says until when":  {"red", "done", nil},
		"AppWrapper step belongs to Run study: use 'mlbatch retry run/study'":                                          {"red", "step", nil},
		"you may not create appwrappers in namespace red: ask an administrator for a role with this right":             {"red", "lost", forbidden("appwrappers", "no role")},
		"another AppWrapper lost-2 was created at this moment: run the command again":                                  {"red", "lost", apierrors.NewAlreadyExists(schema.GroupResource{}, "lost-2")},
		"cannot create appwrappers in namespace red: appwrappers is forbidden: admission webhook x denied the request": {"red", "lost", forbidden("appwrappers", "admission webhook x denied the request")},
	} {
		c := cluster(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return row.err }})
		var out bytes.Buffer
		err := work.Retry(t.Context(), c, found(t, c, row.namespace, row.name), &out)
		wording.OneSentence(t, out.String(), err, want)
	}
}
