// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// job is a job in the dashboard's API.
type job struct {
	Status       string `json:"status"`
	Entrypoint   string `json:"entrypoint"`
	SubmissionID string `json:"submission_id"`
	Message      string `json:"message,omitempty"`
	StartTime    int64  `json:"start_time"`
	EndTime      int64  `json:"end_time,omitempty"`
}

func (j job) ended() bool {
	return j.Status == "SUCCEEDED" || j.Status == "FAILED" || j.Status == "STOPPED"
}

// String says how a job is, in Ray's words.
func (j job) String() string {
	switch j.Status {
	case "SUCCEEDED":
		return fmt.Sprintf("Job '%s' succeeded\n", j.SubmissionID)
	case "FAILED":
		return fmt.Sprintf("Job '%s' failed\nStatus message: %s\n", j.SubmissionID, j.Message)
	}
	return fmt.Sprintf("Status for job '%s': %s\n", j.SubmissionID, j.Status)
}

func submit(ctx context.Context, address, id, entrypoint string) error {
	request, err := json.Marshal(job{SubmissionID: id, Entrypoint: entrypoint})
	if err != nil {
		return err
	}
	_, err = ask[any](ctx, http.MethodPost, address+"/api/jobs/", request)
	return err
}

func look(ctx context.Context, address, id string) (job, error) {
	return ask[job](ctx, http.MethodGet, address+"/api/jobs/"+id, nil)
}

// follow waits until a job ends, and prints its log. As with Ray, it does not fail if the job did.
func follow(ctx context.Context, address, id string, out io.Writer) error {
	for {
		j, err := look(ctx, address, id)
		if err != nil {
			return err
		}
		if !j.ended() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(200 * time.Millisecond):
				continue
			}
		}
		written, err := ask[struct{ Logs string }](ctx, http.MethodGet, address+"/api/jobs/"+id+"/logs", nil)
		fmt.Fprint(out, written.Logs, j)
		return err
	}
}

// ask sends a request to a dashboard.
func ask[T any](ctx context.Context, method, url string, body []byte) (answer T, err error) {
	if !strings.HasPrefix(url, "http://") {
		return answer, fmt.Errorf("%q is not the URL of a dashboard", url)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%s %s: %s", method, url, response.Status)
	}
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}
