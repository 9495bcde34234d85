// SPDX-License-Identifier: Apache-2.0

package appwrapper

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

// dryRuns remembers what was answered to creations with dry run, so that each AppWrapper costs them once. A new process
// asks again.
type dryRuns struct {
	answers *lru.Cache
	// asking has an item for each AppWrapper whose components are tried now.
	asking chan struct{}
	// full has since when an AppWrapper finds that too many are asking.
	full *lru.Cache
}

const (
	// answersKept is more AppWrappers than usually wait. What is forgotten is asked again.
	answersKept = 20_000
	// askedAtATime bounds how many workers wait for webhooks that are slow, and what the API server has to do.
	askedAtATime = 4
	// answerWithin is how long the API server may take for all components of an AppWrapper. What takes longer is no
	// answer.
	answerWithin = 10 * time.Second
	// untilFree is when to look again if too many are asking. It doubles, up to longestUntilFree.
	untilFree        = 2 * time.Second
	longestUntilFree = time.Minute
)

func newDryRuns() *dryRuns {
	return &dryRuns{answers: lru.New(answersKept), asking: make(chan struct{}, askedAtATime), full: lru.New(answersKept)}
}

// of is what is known of an AppWrapper; nil if nobody asks.
func (d *dryRuns) of(aw types.UID) *lifecycle.DryRun {
	if d == nil {
		return nil
	}
	known, _ := d.answers.Get(aw)
	answer, _ := known.(lifecycle.DryRun)
	return &answer
}

// turn is taken before anything is read for an AppWrapper. Otherwise, it returns when to look again: the longer it has
// been waiting, the later, however often something wakes it meanwhile.
func (d *dryRuns) turn(aw types.UID, now time.Time) (taken bool, again time.Duration) {
	select {
	case d.asking <- struct{}{}:
		d.full.Remove(aw)
		return true, 0
	default:
	}
	since, waits := d.full.Get(aw)
	if !waits {
		d.full.Add(aw, now)
		return false, untilFree
	}
	return false, min(max(now.Sub(since.(time.Time)), untilFree), longestUntilFree)
}

func (d *dryRuns) done() { <-d.asking }

// takeTurn tries to create the targets if few others are tried now.
func (r *Reconciler) takeTurn(ctx context.Context, o *observation, targets []int) (again time.Duration, more bool, err error) {
	taken, again := r.dryRuns.turn(o.aw.UID, r.now())
	if !taken {
		return again, false, nil
	}
	defer r.dryRuns.done()
	if unchanged, err := r.confirmItself(ctx, o, lifecycle.TryCreate); err != nil || !unchanged {
		return 0, false, err
	}
	return r.tryCreate(ctx, o, targets)
}

// tryCreate creates the targets with dry run, in order, up to the first refusal that quota would not help.
func (r *Reconciler) tryCreate(ctx context.Context, o *observation, targets []int) (again time.Duration, more bool, err error) {
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answer := o.snapshot.DryRun.Answered(0, nil, r.now())
	for _, i := range targets {
		if refused := r.dryRun(within, o.aw, i, targets[0]); refused != nil {
			answer = o.snapshot.DryRun.Answered(i, &refused.Refusal, r.now())
			r.metrics.refused(refused)
			break
		}
	}
	if ctx.Err() != nil { // this process ends
		return 0, false, ctx.Err()
	}
	r.dryRuns.answers.Add(o.aw.UID, answer)
	o.snapshot.DryRun = &answer
	return 0, true, nil
}

// dryRun returns why component i can never be created; nil if nothing proves that.
func (r *Reconciler) dryRun(ctx context.Context, aw *v1beta2.AppWrapper, i, first int) *refusal {
	object, err := assemble(aw, i, r.allPods)
	if err != nil {
		return final(causeTemplate, err.Error())
	}
	namespaced, err := r.client.IsObjectNamespaced(object)
	if err == nil && !namespaced || meta.IsNoMatchError(err) {
		return nil // its kind may be served later; the real creation judges its scope
	}
	if err != nil {
		return noAnswer(err)
	}
	if err := r.client.Create(ctx, object, client.DryRunAll); err != nil {
		return proof(err, i == first)
	}
	return nil
}

// proof is what the answer to a creation with dry run proves.
func proof(err error, first bool) *refusal {
	switch {
	case isDenial(err):
		return denied(err, first)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err) && !strings.Contains(err.Error(), "does not support dry run"):
		return final(cause(err), err.Error())
	case unanswered(err):
		return noAnswer(err)
	}
	return nil
}

func noAnswer(err error) *refusal {
	return &refusal{lifecycle.Refusal{Message: err.Error(), Unanswered: true}, cause(err)}
}

// isDenial: a webhook said no. Policies are evaluated by the API server and say no to the same object always.
func isDenial(err error) bool { return strings.Contains(err.Error(), " denied the request") }

// denied is the refusal of a webhook. It may miss an earlier component, which a dry run does not leave behind.
func denied(err error, first bool) *refusal {
	if !first {
		return nil
	}
	refused := later(cause(err), err.Error())
	refused.Denied = true
	return refused
}
