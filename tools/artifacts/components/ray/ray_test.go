// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/interp"
)

// submitter is the script that KubeRay gives to the pod that submits a job.
const submitter = `if ! ray job status --address URL job-1 >/dev/null 2>&1 ; then ray job submit --address URL --no-wait ` +
	`--runtime-env-json "{\"a\":1}" --submission-id job-1 -- ENTRYPOINT ; fi ; ray job logs --address URL --follow job-1`

func TestAJobEndsAsItsEntrypoint(t *testing.T) {
	for name, c := range map[string]struct{ entrypoint, status string }{
		"one that succeeds": {"echo trained", "SUCCEEDED"},
		"one that fails":    {"exit 3", "FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(newDashboard(t.Context()))
			defer server.Close()
			text := strings.NewReplacer("URL", server.URL, "ENTRYPOINT", c.entrypoint).Replace(submitter)
			for range 2 { // a second run must not submit the job again
				if err := script(t.Context(), text, t.Output(), "-e"); err != nil {
					t.Fatal(err)
				}
			}
			j, err := look(t.Context(), server.URL, "job-1")
			if err != nil || j.Status != c.status {
				t.Errorf("it is %+v (%v)", j, err)
			}
		})
	}
}

// The submitter of a Run is a script of controller/runplan. It ends with the code of a file's line.
func TestARunIsSubmitted(t *testing.T) {
	for name, c := range map[string]struct {
		line, says string
		code       interp.ExitStatus
	}{
		"one that succeeds": {"echo trained", "trained\nJob 'job-1' succeeded\n", 0},
		"one that fails":    {"echo no data\nexit 7", "no data\nJob 'job-1' failed\nStatus message: Job entrypoint command failed with exit code 7, last available logs (truncated to 20,000 chars):\nno data\n", 7},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(newDashboard(t.Context()))
			defer server.Close()
			file := filepath.Join(t.TempDir(), "main")
			if err := os.WriteFile(file, []byte(c.line), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("RAY_DASHBOARD_ADDRESS", strings.TrimPrefix(server.URL, "http://"))
			t.Setenv("RAY_JOB_SUBMISSION_ID", "job-1")
			text := strings.ReplaceAll(submitterOfRuns(t), "/codeflare/command/main", file)
			for range 2 { // also one that comes later
				var out strings.Builder
				err := bash(t.Context(), []string{"-c", text}, &out)
				var code interp.ExitStatus
				if errors.As(err, &code); code != c.code || err != nil && code == 0 || !strings.HasPrefix(out.String(), c.says) {
					t.Errorf("it ends with %v, after\n%s", err, &out)
				}
			}
		})
	}
}

// submitterOfRuns is the script of a plan. Kubernetes makes one $ of two.
func submitterOfRuns(t *testing.T) string {
	t.Helper()
	plans, err := os.ReadFile("../../../../controller/runplan/testdata/ray-job.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(plans), "- bash\n              - -c\n              - |\n")
	text, _, found := strings.Cut(rest, "\n              image:")
	if !found {
		t.Fatal("the plans have no script")
	}
	return strings.ReplaceAll(text, "$$", "$")
}

func TestTheShellEndsAtTheFirstError(t *testing.T) {
	var out bytes.Buffer
	err := script(t.Context(), "ulimit -n 65536; echo one; ray job status nowhere; echo two", &out, "-e")
	if err != interp.ExitStatus(1) || !strings.Contains(out.String(), "one\n") || strings.Contains(out.String(), "two\n") {
		t.Errorf("it ended with %v, after\n%s", err, &out)
	}
}

func TestAnUnknownJobIsNotFound(t *testing.T) {
	w := httptest.NewRecorder()
	newDashboard(t.Context()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/jobs/job-1", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("got %d", w.Code)
	}
}

func TestWhatIsAskedForIsServed(t *testing.T) {
	d := newDashboard(t.Context())
	for _, r := range []struct{ method, body, want string }{
		{http.MethodGet, "", `{"applications":{}}`},
		{http.MethodPut, `{"applications":[{"name":"app"}]}`, ``},
		{http.MethodGet, "", `{"applications":{"app":{"deployments":{},"name":"app","status":"RUNNING"}}}`},
	} {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), r.method, "/api/serve/applications/", strings.NewReader(r.body)))
		if got := strings.TrimSpace(w.Body.String()); got != r.want || w.Code != http.StatusOK {
			t.Errorf("%s %s: got %d %s, want %s", r.method, r.body, w.Code, got, r.want)
		}
	}
}
