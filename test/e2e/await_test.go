// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mlbatch/mlbatch/test/patience"
)

// question checks the cluster, and returns what is still missing.
type question func(context.Context) (missing string, err error)

// broken is a violation that no waiting can repair.
type broken string

func (b broken) Error() string { return string(b) }

// await asks until nothing is missing. It tolerates an API server that is briefly unavailable.
func await(ctx context.Context, ask question) error {
	var last error
	err := patience.Poll(ctx, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		missing, err := ask(ctx)
		var final broken
		switch {
		case errors.As(err, &final):
			return false, final
		case err != nil && ctx.Err() == nil:
			last = err
		case err == nil && missing != "" && ctx.Err() == nil: // what is asked too late has no answer
			last = errors.New(missing)
		}
		return err == nil && missing == "", nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

func TestAQuestionIsAskedUntilItIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error // one per question; the last one repeats
		asked   int
		want    error
	}{
		"nothing is missing":                     {[]error{nil}, 1, nil},
		"the API server does not answer at once": {[]error{errors.New("connection refused"), nil}, 2, nil},
		"a broken promise is final":              {[]error{fmt.Errorf("look: %w", broken("half a gang")), nil}, 1, broken("half a gang")},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			err := await(t.Context(), func(context.Context) (string, error) {
				asked++
				return "", c.answers[asked-1]
			})
			if asked != c.asked || !errors.Is(err, c.want) {
				t.Errorf("asked %d times, then %v", asked, err)
			}
		})
	}
}
