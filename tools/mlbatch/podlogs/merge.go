// SPDX-License-Identifier: Apache-2.0

package podlogs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Merged copies the logs of several pods in the order of time. Each line begins with the label of its pod.
func Merged(ctx context.Context, open Open, pods []Pod, out io.Writer, label func(Pod) string) error {
	var streams []*stream
	var failures []error
	for _, pod := range pods {
		log, err := pod.open(ctx, open, false, true)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		defer log.Close()
		s := &stream{pod: pod, lines: bufio.NewReader(log)}
		s.next()
		streams = append(streams, s)
	}
	for s := earliest(streams); s != nil; s = earliest(streams) {
		fmt.Fprintf(out, "[%s] %s\n", label(s.pod), s.line)
		s.next()
	}
	for _, s := range streams {
		failures = append(failures, s.err)
	}
	return printing.JoinErrors(failures)
}

// stream is a log of which one line was read ahead.
type stream struct {
	pod   Pod
	lines *bufio.Reader
	at    time.Time
	line  string
	ended bool
	err   error
}

// earliest is the stream whose line was written first, or nil after the last line. Of two at the same time it is the
// first one.
func earliest(streams []*stream) (first *stream) {
	for _, s := range streams {
		if !s.ended && (first == nil || s.at.Before(first.at)) {
			first = s
		}
	}
	return first
}

// next reads a line, which begins with its time. What has none belongs to the line before it.
func (s *stream) next() {
	line, err := s.lines.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = brokeOff(s.pod, err)
	}
	s.ended = line == "" && err != nil
	s.line = strings.TrimSuffix(line, "\n")
	if stamp, rest, found := strings.Cut(s.line, " "); found {
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			s.at, s.line = at, rest
		}
	}
}
