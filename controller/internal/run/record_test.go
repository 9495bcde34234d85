// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"testing"
	"testing/synctest"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// An event outlives an API server that cannot be reached, but not one that says no.
func TestAnEventIsCreatedOnce(t *testing.T) {
	unreached := errors.New("connection refused")
	for name, c := range map[string]struct {
		answers []error
		want    int
	}{
		"at once":                   {[]error{nil}, 1},
		"after the API server came": {[]error{unreached, unreached, nil}, 3},
		"never, if it is refused":   {[]error{apierrors.NewBadRequest("no")}, 1},
		"never, if nobody is there": {[]error{unreached}, 12},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				tries := 0
				client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
					tries++
					return true, nil, c.answers[min(tries, len(c.answers))-1]
				})
				create(t.Context(), client.EventsV1().Events("blue"), &eventsv1.Event{})
				if tries != c.want {
					t.Errorf("%d tries, want %d", tries, c.want)
				}
			})
		})
	}
}
