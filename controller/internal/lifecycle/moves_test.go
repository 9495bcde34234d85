// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/golden"
)

// A way leads from one phase to another, for any of these causes.
type way struct {
	from, to v1beta2.AppWrapperPhase
	causes   []lifecycle.Cause
}

var (
	refusals      = []lifecycle.Cause{lifecycle.CauseCreationRefused, lifecycle.CauseOldComponentRemains}
	failures      = []lifecycle.Cause{lifecycle.CauseComponentFailed, lifecycle.CauseSurplusPods, lifecycle.CauseNoProgress, lifecycle.CausePodsFailed, lifecycle.CauseReadinessLate}
	unhealthyNode = lifecycle.CauseNodeUnhealthy
)

// ways lists all moves. Rows, stories and walks take no other, and together they take each.
// docs/lifecycle.md shows them as a table and as a picture.
var ways = []way{
	{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperSuspended, []lifecycle.Cause{lifecycle.CauseAccepted}},
	{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperResuming, []lifecycle.Cause{lifecycle.CauseQuotaGiven}},
	{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperFailed, []lifecycle.Cause{lifecycle.CauseInvalidAppWrapper, lifecycle.CauseInvalidComponent}},
	{v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming, []lifecycle.Cause{lifecycle.CauseQuotaGiven}},
	{v1beta2.AppWrapperSuspended, v1beta2.AppWrapperFailed, []lifecycle.Cause{lifecycle.CauseCreationRejected}},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning, []lifecycle.Cause{lifecycle.CauseComponentsExist}},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperResetting, refusals},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperFailed, append([]lifecycle.Cause{lifecycle.CauseCreationRejected}, refusals...)},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperSuspending, []lifecycle.Cause{lifecycle.CauseSuspended}},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperSucceeded, []lifecycle.Cause{lifecycle.CauseAllSucceeded}},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperResetting, append([]lifecycle.Cause{unhealthyNode}, failures...)},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperFailed, append([]lifecycle.Cause{lifecycle.CauseComponentMissing, lifecycle.CauseSameFailure}, failures...)},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperSuspending, []lifecycle.Cause{lifecycle.CauseSuspended}},
	{v1beta2.AppWrapperResetting, v1beta2.AppWrapperResuming, []lifecycle.Cause{lifecycle.CauseRetryPauseOver}},
	{v1beta2.AppWrapperResetting, v1beta2.AppWrapperSuspending, []lifecycle.Cause{lifecycle.CauseSuspended}},
	{v1beta2.AppWrapperResetting, v1beta2.AppWrapperFailed, []lifecycle.Cause{lifecycle.CauseOldComponentRemains}},
	{v1beta2.AppWrapperSuspending, v1beta2.AppWrapperFailed, []lifecycle.Cause{lifecycle.CauseOldComponentRemains}},
	{v1beta2.AppWrapperSuspending, v1beta2.AppWrapperSuspended, []lifecycle.Cause{lifecycle.CauseEverythingGone}},
	{anyPhase, v1beta2.AppWrapperTerminating, []lifecycle.Cause{lifecycle.CauseDeleted}},
}

// anyPhase stands for each phase but Terminating.
const anyPhase v1beta2.AppWrapperPhase = "any"

// step is one move of one AppWrapper.
type step struct {
	from, to v1beta2.AppWrapperPhase
	because  lifecycle.Cause
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
		fmt.Fprintf(&b, "| %s | %s | %s |\n", nameInDocs(w.from), w.to, quoted(w.causes))
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

func quoted(causes []lifecycle.Cause) string {
	var names []string
	for _, cause := range causes {
		names = append(names, "`"+string(cause)+"`")
	}
	return strings.Join(names, ", ")
}

var (
	camelCase       = regexp.MustCompile(`^([A-Z][a-z]+)+$`)
	documentedCause = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| .+ \\|$")
)

func TestCausesAreWordsOfTheDocumentation(t *testing.T) {
	var causes, ofMoves, documented []lifecycle.Cause
	causes = lifecycle.Causes()
	for _, s := range allSteps() {
		ofMoves = append(ofMoves, s.because)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "lifecycle.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Causes\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range documentedCause.FindAllStringSubmatch(table, -1) {
		documented = append(documented, lifecycle.Cause(row[1]))
	}
	if diff := cmp.Diff(causes, documented); diff != "" {
		t.Errorf("the table of causes in docs/lifecycle.md has others (-code +docs):\n%s", diff)
	}
	for _, cause := range causes {
		if !camelCase.MatchString(string(cause)) {
			t.Errorf("%q is not in CamelCase", cause)
		}
		if !slices.Contains(ofMoves, cause) {
			t.Errorf("%s causes no move", cause)
		}
	}
	for _, cause := range ofMoves {
		if !slices.Contains(causes, cause) {
			t.Errorf("%s is not one of the causes", cause)
		}
	}
}
