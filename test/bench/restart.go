// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"time"

	"github.com/mlbatch/mlbatch/test/auditlog"
)

// Restart is what follows when the process of our controller is killed.
type Restart struct {
	// Running AppWrappers did so before, and Beginning ones were to begin.
	Running   int `json:"running"`
	Beginning int `json:"beginning"`
	// First is the seconds until the next process acted for the first time, and All those until all ran.
	First float64 `json:"firstSeconds"`
	All   float64 `json:"allSeconds"`
	// Duplicates are Jobs beyond one for each AppWrapper.
	Duplicates int `json:"duplicates"`
}

// lastWords is for requests that the killed process has sent. The next one starts later.
const lastWords = 100 * time.Millisecond

// FirstAct is the seconds from the kill until our controller acted for the first time; 0 if it did not.
func FirstAct(requests []auditlog.Request, killed time.Time) (first float64) {
	for _, request := range requests {
		what := request.What()
		if asker(request) != Ours || what != "create jobs" && what != "patch appwrappers/status" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, request.RequestReceivedTimestamp)
		if after := at.Sub(killed); err == nil && after > lastWords && (first == 0 || after.Seconds() < first) {
			first = after.Seconds()
		}
	}
	return first
}

// String has lines of a page.
func (r *Restart) String() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%d AppWrappers ran, and %d were to begin, when the process of the controller was killed.\n"+
		"The next process acted %s seconds later for the first time. All ran %s seconds after the kill.\nJobs that were created twice: %d.\n",
		r.Running, r.Beginning, number(r.First), number(r.All), r.Duplicates)
}
