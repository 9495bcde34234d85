// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
)

// Ending says in a question what Cancel would do.
func Ending(all []explain.Objects) string {
	if len(all) == 1 {
		return endingOne(all[0])
	}
	var names []string
	for _, o := range all {
		names = append(names, called(o))
	}
	return fmt.Sprintf("Cancel these %d, with all that they have created: %s?", len(all), strings.Join(names, ", "))
}

// called is the name of some work, with its state if that is known.
func called(o explain.Objects) string {
	i := summary(o)
	switch {
	case o.Run != nil:
		return fmt.Sprintf("Run %s (%s)", o.Run.Name, cmp.Or(string(o.Run.Status.Phase), "new"))
	case o.AppWrapper == nil && o.Workload == nil:
		return i.Kind + " " + i.Name
	}
	return fmt.Sprintf("%s %s (%s)", i.Kind, i.Name, i.State)
}

func endingOne(o explain.Objects) string {
	i := summary(o)
	switch {
	case o.Run != nil:
		return fmt.Sprintf("Cancel Run %s in namespace %s, which is %s?", o.Run.Name, o.Run.Namespace, cmp.Or(string(o.Run.Status.Phase), "new"))
	case o.AppWrapper == nil && o.Workload == nil: // only the name of the job is known
		return fmt.Sprintf("Delete %s %s in namespace %s, and all that it has created?", i.Kind, i.Name, i.Namespace)
	}
	return fmt.Sprintf("Delete %s %s in namespace %s, which is %s, and all that it has created?", i.Kind, i.Name, i.Namespace, i.State)
}

// Cancel deletes an AppWrapper or a bare job. It ends a Run, and keeps its record.
func Cancel(ctx context.Context, c client.Client, o explain.Objects, out io.Writer) error {
	var object client.Object = o.AppWrapper
	i := summary(o)
	switch {
	case o.Run != nil:
		return runs.Cancel(ctx, c, client.ObjectKeyFromObject(o.Run), out)
	case o.AppWrapper == nil:
		object = o.Job
	case ownerRun(o.AppWrapper) != "":
		return fmt.Errorf("AppWrapper %s belongs to Run %s: use 'mlbatch cancel run/%s'", i.Name, ownerRun(o.AppWrapper), ownerRun(o.AppWrapper))
	case o.AppWrapper.DeletionTimestamp != nil:
		fmt.Fprintf(out, "AppWrapper %s is already being deleted\n", i.Name)
		return nil
	}
	uid := object.GetUID()
	err := c.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return clusterstate.Failed(err, clusterstate.Request{Verb: "delete", Resource: strings.ToLower(i.Kind) + "s", Namespace: i.Namespace})
	}
	fmt.Fprintf(out, "%s %s was deleted in namespace %s\n", i.Kind, i.Name, i.Namespace)
	return nil
}

// ownerRun is the Run that has made an AppWrapper, or empty.
func ownerRun(aw *v1beta2.AppWrapper) string {
	for _, o := range aw.OwnerReferences {
		if o.Kind == "Run" {
			return o.Name
		}
	}
	return ""
}
