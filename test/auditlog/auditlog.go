// SPDX-License-Identifier: Apache-2.0

// Package auditlog reads the audit log of a local cluster's API server: what was asked, by whom.
package auditlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Request is a line of the log.
type Request struct {
	Verb                     string
	RequestURI               string
	User                     struct{ Username string }
	SourceIPs                []string
	RequestReceivedTimestamp string
	Stage                    string
	ObjectRef                struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct{ Code int }
}

func (r Request) String() string {
	return r.RequestReceivedTimestamp + " " + r.Verb + " " + r.RequestURI
}

// Account is the service account in a namespace that sent the request, or "".
func (r Request) Account(namespace string) string {
	account, found := strings.CutPrefix(r.User.Username, "system:serviceaccount:"+namespace+":")
	if !found {
		return ""
	}
	return account
}

// What is the verb with the kind of object: "patch appwrappers/status".
func (r Request) What() string {
	what := r.Verb + " " + r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		what += "/" + r.ObjectRef.Subresource
	}
	return what
}

// Log is read from its begin, and goes on where the last reading ended. It does not contain
// leases (see tools/localcluster/files).
type Log struct {
	file   string
	offset int64
}

// Of returns the log of the cluster whose state is in a folder.
func Of(cluster string) *Log { return &Log{file: filepath.Join(cluster, "log", "audit.log")} }

// News returns the requests that were logged since the last call.
func (l *Log) News() ([]Request, error) {
	f, err := os.Open(l.file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < l.offset {
		l.offset = 0 // the log was rotated
	}
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	var news []Request
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return news, nil // the last line may be incomplete
		}
		var r Request
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the audit log: %w", err)
		}
		l.offset += int64(len(line))
		news = append(news, r)
	}
}
