// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/golden"
)

// A way leads from one phase to another, for any of these causes.
type way struct {
	from, to v1beta2.AppWrapperPhase
	causes   []string
}

const (
	isSuspended = "suspended by Kueue"
	noRetry     = ", and no retry is left or of use"
)

var (
	refusals      = []string{"creation refused for too long", "an old component does not go away"}
	failures      = []string{"component failed", "pods failed", "readiness is late"}
	unhealthyNode = "a node has to be left"
)

// ways lists all moves. Rows, stories and walks take no other, and together they take each.
// docs/lifecycle.md shows them as a table and as a picture.
var ways = []way{
	{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperSuspended, []string{"accepted"}},
	{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperFailed, []string{"the AppWrapper makes no sense", "a component makes no sense"}},
	{v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming, []string{"quota is given"}},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning, []string{"all components exist"}},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperResetting, refusals},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperFailed, append([]string{"creation refused for good"}, each(refusals, noRetry)...)},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperSuspending, []string{isSuspended}},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperSucceeded, []string{"all succeeded"}},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperResetting, append([]string{unhealthyNode}, failures...)},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperFailed, append([]string{"component missing"}, each(failures, noRetry)...)},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperSuspending, []string{isSuspended}},
	{v1beta2.AppWrapperResetting, v1beta2.AppWrapperResuming, []string{"the retry pause is over"}},
	{v1beta2.AppWrapperResetting, v1beta2.AppWrapperSuspending, []string{isSuspended}},
	{v1beta2.AppWrapperSuspending, v1beta2.AppWrapperSuspended, []string{"everything is gone"}},
	{anyPhase, v1beta2.AppWrapperTerminating, []string{"deleted"}},
}

// anyPhase stands for each phase but Terminating.
const anyPhase v1beta2.AppWrapperPhase = "any"

func each(causes []string, suffix string) []string {
	longer := make([]string, len(causes))
	for i, cause := range causes {
		longer[i] = cause + suffix
	}
	return longer
}

// step is one move of one AppWrapper.
type step struct {
	from, to v1beta2.AppWrapperPhase
	because  string
}

func (s step) String() string {
	return fmt.Sprintf("%s → %s because %q", name(s.from), name(s.to), s.because)
}

func allSteps() []step {
	var steps []step
	for _, w := range ways {
		for _, cause := range w.causes {
			steps = append(steps, step{w.from, w.to, cause})
		}
	}
	return steps
}

// seen are the steps that this run of the tests has seen.
var seen = struct {
	sync.Mutex
	steps map[step]bool
}{steps: map[step]bool{}}

// isListed reports whether a move is one of the ways, and records that it was seen.
func isListed(from v1beta2.AppWrapperPhase, d lifecycle.Decision) bool {
	s := step{from, d.Status.Phase, d.Because}
	if s.to == v1beta2.AppWrapperTerminating {
		s.from = anyPhase
	}
	seen.Lock()
	defer seen.Unlock()
	seen.steps[s] = true
	return slices.Contains(allSteps(), s)
}

// untakenSteps are those that no test took.
func untakenSteps() []step {
	return slices.DeleteFunc(allSteps(), func(s step) bool { return seen.steps[s] })
}

func TestTheDocumentationShowsTheMoves(t *testing.T) {
	file := filepath.Join("..", "..", "..", "docs", "lifecycle.md")
	golden.Between(t, file, "<!-- moves: written by go test ./controller/internal/lifecycle -update -->\n", "<!-- end of moves -->\n", table())
}

func table() string {
	var b strings.Builder
	b.WriteString("\n| from | to | because |\n|---|---|---|\n")
	for _, w := range ways {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", nameInDocs(w.from), w.to, strings.Join(summary(w.causes), "; "))
	}
	b.WriteString("\n")
	return b.String()
}

func nameInDocs(phase v1beta2.AppWrapperPhase) string {
	switch phase {
	case v1beta2.AppWrapperEmpty:
		return "(none)"
	case anyPhase:
		return "any phase"
	}
	return string(phase)
}

// summary names the suffix that several causes share only once.
func summary(causes []string) []string {
	var short, retriable []string
	for _, cause := range causes {
		if first, ok := strings.CutSuffix(cause, noRetry); ok {
			retriable = append(retriable, first)
			continue
		}
		short = append(short, cause)
	}
	if len(retriable) > 0 {
		short = append(short, "when no retry is left or of use: "+strings.Join(retriable, ", "))
	}
	return short
}
