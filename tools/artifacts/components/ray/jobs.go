// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
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

// follow waits until a job ends, and prints its log.
func follow(ctx context.Context, address, id string) error {
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
		fmt.Fprint(os.Stdout, written.Logs)
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
