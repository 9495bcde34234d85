// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func (f *follower) log(ctx context.Context, pod string) (string, error) {
	data, err := f.pods.CoreV1().Pods(f.job.Namespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot read the log of pod %s: %w", pod, err)
	}
	return string(data), nil
}

// readTraining collects the events that the training program prints as JSON
// lines among other output.
func readTraining(log string) (*training, error) {
	t := &training{}
	done := false
	for line := range strings.Lines(log) {
		var event struct {
			Event     string  `json:"event"`
			WorldSize int     `json:"worldSize"`
			Sum       float64 `json:"sum"`
			FirstLoss float64 `json:"firstLoss"`
			LastLoss  float64 `json:"lastLoss"`
			Accuracy  float64 `json:"accuracy"`
		}
		if json.Unmarshal([]byte(line), &event) != nil {
			continue
		}
		switch event.Event {
		case "start":
			t.WorldSize = event.WorldSize
		case "allreduce":
			t.AllReduceSum = event.Sum
		case "done":
			done = true
			t.FirstLoss, t.LastLoss, t.Accuracy = event.FirstLoss, event.LastLoss, event.Accuracy
		}
	}
	if !done {
		return nil, errors.New("the job's first pod did not print the end of the training:\n" + lastLines(log, 15))
	}
	return t, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}
