// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// asked is a line of the API server's audit log.
type asked struct {
	Verb                     string
	RequestURI               string
	User                     struct{ Username string }
	SourceIPs                []string
	RequestReceivedTimestamp string
	Stage                    string
	ObjectRef                struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct{ Code int }
}

func (a asked) String() string { return a.RequestReceivedTimestamp + " " + a.Verb + " " + a.RequestURI }

// audit reads the audit log, which does not contain leases (see tools/localcluster/files).
type audit struct {
	*testing.T
	file   string
	offset int64
}

func (p person) audit(t *testing.T) *audit {
	return &audit{T: t, file: filepath.Join(p.dir(), "log", "audit.log")}
}

// news returns the requests that were logged since the last call.
func (a *audit) news() []asked {
	a.Helper()
	f, err := os.Open(a.file)
	if err != nil {
		a.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < a.offset {
		a.offset = 0 // the log was rotated
	}
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		a.Fatal(err)
	}
	var news []asked
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return news // the last line may be incomplete
		}
		if err != nil {
			a.Fatal(err)
		}
		a.offset += int64(len(line))
		var event asked
		if err := json.Unmarshal(line, &event); err != nil {
			a.Fatal(fmt.Errorf("cannot read the audit log: %w", err))
		}
		news = append(news, event)
	}
}

// ours returns the requests of our controller of AppWrappers.
func (a *audit) ours() []asked {
	a.Helper()
	return a.of("appwrapper-controller-manager")
}

// of returns the requests of a service account of the platform.
func (a *audit) of(account string) []asked {
	a.Helper()
	return slices.DeleteFunc(a.news(), func(e asked) bool {
		return e.User.Username != "system:serviceaccount:"+platform.Namespace+":"+account
	})
}

// allowed reports whether a request is acceptable while nothing happens: watches expire and are
// reopened, and clients that scrape metrics are authorized.
func allowed(e asked) bool {
	switch e.ObjectRef.Resource {
	case "tokenreviews", "subjectaccessreviews":
		return true
	}
	return e.Verb == "watch"
}
