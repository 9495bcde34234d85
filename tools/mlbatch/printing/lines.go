// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"io"
	"sync"
)

// Lines lets several goroutines write lines.
type Lines struct {
	mutex sync.Mutex
	out   io.Writer
}

// NewLines returns Lines that are written to out.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// Printf writes one line.
func (l *Lines) Printf(format string, args ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintf(l.out, format+"\n", args...)
}
