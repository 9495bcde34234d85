// SPDX-License-Identifier: Apache-2.0

package othercontroller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
)

func TestWorkBeginsWhenNobodyElseIsAtWork(t *testing.T) {
	answers := []func() (string, error){
		func() (string, error) { return "the old one", nil },
		func() (string, error) { return "the old one", nil },
		func() (string, error) { return "", errors.New("the API server is away") },
		func() (string, error) { return "", nil },
	}
	asked, begun := 0, 0
	var log strings.Builder
	ready := make(chan struct{})
	close(ready)
	c := &candidate{
		ready: ready, interval: time.Nanosecond,
		begin: func() error { begun++; return nil },
		log:   funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{}),
		other: func(context.Context) (string, error) {
			if begun > 0 {
				t.Error("it has started too early")
			}
			asked++
			return answers[asked-1]()
		},
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked != len(answers) || begun != 1 {
		t.Errorf("it looked %d times and started %d times", asked, begun)
	}
	if got := log.String(); strings.Count(got, "the old one") != 1 || strings.Count(got, "the API server is away") != 1 {
		t.Errorf("the log is\n%s", got)
	}
	if got := strings.Count(log.String(), "controllerManager.ignoreOtherControllers"); got != 2 {
		t.Errorf("the log names the setting %d times, not with each reason to wait", got)
	}
}

func TestNothingBeginsInAProcessThatEnds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, ready := range map[string]chan struct{}{"before the webhooks are served": make(chan struct{}), "while it waits": closed()} {
		t.Run(name, func(t *testing.T) {
			c := &candidate{
				ready: ready, interval: time.Hour, log: funcr.New(func(string, string) {}, funcr.Options{}),
				begin: func() error { return errors.New("it has begun") },
				other: func(context.Context) (string, error) { return "the old one", nil },
			}
			if err := c.Start(ended); err != nil {
				t.Error(err)
			}
		})
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
