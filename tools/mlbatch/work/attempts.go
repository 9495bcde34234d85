// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// attemptOf is the number of the attempt whose pods may be there. It counts from 1, as the last failure of a Run does:
// a retry begins an attempt, and neither a migration nor an eviction does. Before the pods of a failed attempt are
// gone, the controller has counted the retry already.
func attemptOf(aw *v1beta2.AppWrapper) int32 {
	status := aw.Status
	leaving := status.Phase == v1beta2.AppWrapperResetting || status.Phase == v1beta2.AppWrapperSuspending
	failed := meta.FindStatusCondition(status.Conditions, string(v1beta2.Unhealthy))
	if leaving && status.Retries > 0 && failed != nil && failed.Status == "True" && failed.Reason != v1beta2.ReasonAutopilotNoExecute {
		return status.Retries
	}
	return status.Retries + 1
}

// ofAttempt is an error unless the pods that are there are those of the attempt that is wanted, or any will do.
func ofAttempt(ctx context.Context, c client.Reader, o explain.Objects, wanted int32) error {
	if wanted == 0 {
		return nil
	}
	aw, i := o.AppWrapper, summary(o)
	if o.Run != nil {
		i.Kind, i.Name = v1alpha1.RunKind, o.Run.Name
	}
	switch {
	case aw == nil && o.Run == nil:
		return fmt.Errorf("the attempts of a %s that nothing wraps are not counted: leave --attempt out", i.Kind)
	case aw == nil:
		return fmt.Errorf("%s %s has not begun an attempt: it is %s", i.Kind, i.Name, i.State)
	}
	switch present := attemptOf(aw); {
	case wanted == present:
		return nil
	case wanted > present:
		return fmt.Errorf("%s %s has no attempt %d: the present one is %d", i.Kind, i.Name, wanted, present)
	default:
		text := fmt.Sprintf("attempt %d of %s %s has no pods any more, and their logs are gone with them", wanted, i.Kind, i.Name)
		if wanted == present-1 {
			text += whatIsLeft(ctx, c, o)
		}
		return fmt.Errorf("%s: the present attempt is %d", text, present)
	}
}

// whatIsLeft is what the cluster still knows of the last failure.
func whatIsLeft(ctx context.Context, c client.Reader, o explain.Objects) string {
	if o.Run != nil && o.Run.Status.LastFailure != nil {
		return fmt.Sprintf("; the last lines of the first container that failed are in 'mlbatch status run/%s'", o.Run.Name)
	}
	warnings := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", corev1.EventTypeWarning)}
	events, err := clusterstate.List[corev1.Event](ctx, c, &corev1.EventList{}, client.InNamespace(o.AppWrapper.Namespace), warnings)
	if err != nil {
		return ""
	}
	if f := newestWarning(o.AppWrapper, events); f != nil {
		return printing.OneLine(fmt.Sprintf("; the last warning about it is %s: %s", f.Reason, f.Message))
	}
	return ""
}
