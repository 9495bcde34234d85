// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
)

func TestTheDocumentationShowsTheDefaults(t *testing.T) {
	annotations := readRepository(t, "docs/api/appwrapper.md")
	timers := readRepository(t, "docs/lifecycle.md")
	for _, p := range lifecycle.Periods() {
		if p.Annotation == "" {
			continue
		}
		if got := asPeriod(t, p, documented(annotations, p.Annotation)); got != p.Default {
			t.Errorf("docs/api/appwrapper.md says that %s is %s by default, and it is %s", p.Annotation, got, p.Default)
		}
		row := fmt.Sprintf("| `%s` | `%s` |\n", strings.TrimPrefix(p.Annotation, v1beta2.AnnotationPrefix), p.Key)
		if !strings.Contains(timers, row) {
			t.Errorf("the timers of docs/lifecycle.md have no row that ends with %s", row)
		}
	}
	for _, l := range lifecycle.Limits() {
		if l.Annotation != "" && documented(annotations, l.Annotation) != fmt.Sprint(l.Default) {
			t.Errorf("docs/api/appwrapper.md says that %s is %q by default, and it is %d", l.Annotation, documented(annotations, l.Annotation), l.Default)
		}
	}
}

// The guide for administrators and researchers says how much there is of what.
func TestTheGuideHasTheFigures(t *testing.T) {
	guide := strings.Join(strings.Fields(readRepository(t, "docs/fault-tolerance.md")), " ")
	d := lifecycle.StandardDefaults()
	for _, figure := range []string{
		fmt.Sprintf("| `retryLimit`: %d, or the annotation", d.RetryLimit),
		fmt.Sprintf("| `autopilot.migrationLimit`: %d |", d.MigrationLimit),
		fmt.Sprintf("It remembers %d nodes at most, for attempts that begin within %v hour (", d.Avoid.Nodes, d.Avoid.Period.Hours()),
		fmt.Sprintf("If %d AppWrappers (`nodeHealth.avoid.suspectAfter`)", d.Avoid.SuspectAfter),
		fmt.Sprintf("`forcefulDeletionGracePeriodDuration` (%v minutes)", d.ForcefulDeletionGrace.Minutes()),
		fmt.Sprintf("%v minutes after the last time nothing is concluded", idleIsForgottenAfter.Minutes()),
	} {
		if !strings.Contains(guide, figure) {
			t.Errorf("docs/fault-tolerance.md does not say %q", figure)
		}
	}
}

// documented returns the default in the table of annotations.
func documented(page, annotation string) string {
	row := regexp.MustCompile("(?m)^\\| `" + strings.TrimPrefix(annotation, v1beta2.AnnotationPrefix) + "` \\| ([^|]*) \\|").FindStringSubmatch(page)
	if row == nil {
		return ""
	}
	return row[1]
}

// asPeriod reads a period as an annotation, without a ceiling.
func asPeriod(t *testing.T, p lifecycle.Setting[time.Duration], text string) time.Duration {
	t.Helper()
	const unbounded = 365 * 24 * time.Hour
	defaults := lifecycle.Defaults{Policy: lifecycle.Policy{SuccessTTL: unbounded}, GraceCeiling: unbounded}
	policy, problems := lifecycle.ParsePolicy(map[string]string{p.Annotation: text}, defaults)
	if len(problems) > 0 {
		t.Errorf("docs/api/appwrapper.md: %v", problems)
	}
	return *p.In(&lifecycle.Defaults{Policy: policy})
}

func TestTheGeneratorHasTheSameCeilingOfRetries(t *testing.T) {
	var schema struct {
		Properties struct {
			RetryLimit struct {
				Maximum int32 `json:"maximum"`
			} `json:"retryLimit"`
		} `json:"properties"`
	}
	if err := json.Unmarshal([]byte(readRepository(t, "tools/pytorchjob-generator/chart/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	if got, want := schema.Properties.RetryLimit.Maximum, lifecycle.StandardDefaults().RetryLimitCeiling; got != want {
		t.Errorf("its schema admits %d retries, and the controller %d", got, want)
	}
}

func readRepository(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
