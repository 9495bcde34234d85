// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func (a access) log(ctx context.Context, namespace, pod string) (string, error) {
	data, err := a.pods.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Timestamps: true}).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot read the log of pod %s: %w", pod, err)
	}
	return string(data), nil
}

// event is one JSON line of the training program.
type event struct {
	Event     string  `json:"event"`
	WorldSize int     `json:"worldSize"`
	Sum       float64 `json:"sum"`
	Epoch     int     `json:"epoch"`
	Loss      float64 `json:"loss"`
	FirstLoss float64 `json:"firstLoss"`
	LastLoss  float64 `json:"lastLoss"`
	Accuracy  float64 `json:"accuracy"`
}

// readTraining collects the events that the training program prints as JSON lines among
// other output. Each line starts with its timestamp.
func readTraining(log string) (*training, error) {
	t := &training{}
	done := false
	for line := range strings.Lines(log) {
		stamp, text, _ := strings.Cut(line, " ")
		var e event
		if json.Unmarshal([]byte(text), &e) != nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			return nil, fmt.Errorf("cannot read the time of a log line: %w", err)
		}
		t.take(e, at)
		done = done || e.Event == "done"
	}
	if !done {
		return nil, errors.New("the job's first pod did not print the end of the training:\n" + lastLines(log, 15))
	}
	return t, nil
}

// together is an error unless two processes have learned from each other.
func (t *training) together() error {
	if t.WorldSize != 2 || t.AllReduceSum != 3 || t.LastLoss >= t.FirstLoss/2 {
		return errors.New("the job succeeded, but its two processes did not train together; see the log of its first pod")
	}
	return nil
}

// take adds one event.
func (t *training) take(e event, at time.Time) {
	switch e.Event {
	case "start":
		t.WorldSize = e.WorldSize
	case "allreduce":
		t.AllReduceSum, t.met = e.Sum, at
	case "loss":
		if e.Epoch == 0 {
			t.began = at
		}
		t.Epochs, t.ended = e.Epoch, at
	case "done":
		t.FirstLoss, t.LastLoss, t.Accuracy = e.FirstLoss, e.LastLoss, e.Accuracy
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}
