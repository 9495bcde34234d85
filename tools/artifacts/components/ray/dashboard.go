// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// dashboard is the part of Ray's dashboard that KubeRay uses: jobs, which are shell scripts,
// and applications, which are running as soon as they are deployed.
type dashboard struct {
	ctx  context.Context
	mu   sync.Mutex
	jobs map[string]*job
	logs map[string]*bytes.Buffer
	// applications are the names of deployed applications.
	applications []string
}

// serve serves until ctx is done.
func serve(ctx context.Context, dashboardAddress, proxyAddress string) error {
	proxy := http.NewServeMux()
	proxy.HandleFunc("GET /-/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("success")) })
	failed := make(chan error, 2)
	for address, handler := range map[string]http.Handler{dashboardAddress: newDashboard(ctx), proxyAddress: proxy} {
		server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: time.Minute}
		go func() { failed <- server.ListenAndServe() }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func newDashboard(ctx context.Context) http.Handler {
	d := &dashboard{ctx: ctx, jobs: map[string]*job{}, logs: map[string]*bytes.Buffer{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/jobs/{$}", d.submit)
	mux.HandleFunc("GET /api/jobs/{id}", d.status)
	mux.HandleFunc("GET /api/jobs/{id}/logs", d.log)
	mux.HandleFunc("POST /api/jobs/{id}/stop", d.stop)
	mux.HandleFunc("PUT /api/serve/applications/", d.deploy)
	mux.HandleFunc("GET /api/serve/applications/", d.deployed)
	return mux
}

func (d *dashboard) submit(w http.ResponseWriter, r *http.Request) {
	var j job
	if err := json.NewDecoder(r.Body).Decode(&j); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs[j.SubmissionID] != nil {
		http.Error(w, "Please use a different submission_id.", http.StatusInternalServerError)
		return
	}
	j.Status, j.StartTime = "RUNNING", time.Now().UnixMilli()
	d.jobs[j.SubmissionID] = &j
	go d.run(&j)
	reply(w, map[string]string{"job_id": j.SubmissionID, "submission_id": j.SubmissionID})
}

// run runs a job until it ends.
func (d *dashboard) run(j *job) {
	var out bytes.Buffer
	err := script(d.ctx, j.Entrypoint, &out)
	d.mu.Lock()
	defer d.mu.Unlock()
	if j.ended() {
		return // it was already stopped
	}
	d.logs[j.SubmissionID] = &out
	j.Status, j.EndTime = "SUCCEEDED", time.Now().UnixMilli()
	var status interp.ExitStatus
	switch {
	case errors.As(err, &status):
		j.Status, j.Message = "FAILED", fmt.Sprintf("Job entrypoint command failed with exit code %d, last available logs (truncated to 20,000 chars):\n%s", status, &out)
	case err != nil:
		j.Status, j.Message = "FAILED", err.Error()
	}
}

func (d *dashboard) status(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.jobs[r.PathValue("id")]; j != nil {
		reply(w, j)
		return
	}
	http.NotFound(w, r)
}

func (d *dashboard) log(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	written := ""
	if out := d.logs[r.PathValue("id")]; out != nil {
		written = out.String()
	}
	reply(w, map[string]string{"logs": written})
}

func (d *dashboard) stop(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.jobs[r.PathValue("id")]; j != nil && !j.ended() {
		j.Status, j.EndTime = "STOPPED", time.Now().UnixMilli()
	}
	reply(w, map[string]bool{"stopped": true})
}

func (d *dashboard) deploy(w http.ResponseWriter, r *http.Request) {
	var config struct{ Applications []struct{ Name string } }
	err := json.NewDecoder(r.Body).Decode(&config)
	if err == nil && len(config.Applications) == 0 {
		err = errors.New("there are no applications")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applications = nil
	for _, application := range config.Applications {
		d.applications = append(d.applications, application.Name)
	}
}

func (d *dashboard) deployed(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	applications := map[string]any{}
	for _, name := range d.applications {
		applications[name] = map[string]any{"name": name, "status": "RUNNING", "deployments": map[string]any{}}
	}
	reply(w, map[string]any{"applications": applications})
}

func reply(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
