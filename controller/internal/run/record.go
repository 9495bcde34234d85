// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// newRecorder returns a recorder that forgets an event once it is created. The manager's own keeps
// each for six minutes, to count those that are equal: 3 KiB of each Run, whose events all differ.
func newRecorder(mgr ctrl.Manager) (events.EventRecorder, error) {
	api, err := eventsclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(nil) // not to a sink: that is what keeps them
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		stop, err := broadcaster.StartEventWatcher(func(o runtime.Object) {
			if event, ok := o.(*eventsv1.Event); ok {
				go create(ctx, api.Events(event.Namespace), event)
			}
		})
		if err != nil {
			return fmt.Errorf("cannot record events: %w", err)
		}
		<-ctx.Done()
		stop()
		broadcaster.Shutdown()
		return nil
	}))
	return broadcaster.NewRecorder(mgr.GetScheme(), "runs"), err
}

// unreachable is how often and when to try again if no API server answers.
var unreachable = wait.Backoff{Duration: 10 * time.Second, Steps: 12, Jitter: 0.25}

// create creates an event. One that the API server refuses is lost.
func create(ctx context.Context, api eventsclient.EventInterface, event *eventsv1.Event) {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, unreachable, func(ctx context.Context) (done bool, _ error) {
		_, last = api.Create(ctx, event, metav1.CreateOptions{})
		return last == nil || errors.As(last, new(apierrors.APIStatus)), nil
	})
	if err = errors.Join(err, last); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "cannot create an event", "regarding", event.Regarding, "reason", event.Reason)
	}
}
