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
	"slices"
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

// Log is read from its begin, and goes on where the last reading ended, also in files to which the API
// server has moved it since. It does not contain leases (see tools/localcluster/files).
type Log struct {
	file string
	// read is the file that was read last, up to the offset.
	read   os.FileInfo
	offset int64
}

// Of returns the log of the cluster whose state is in a folder.
func Of(cluster string) *Log { return &Log{file: filepath.Join(cluster, "log", "audit.log")} }

// News returns the requests that were logged since the last call. It is an error if the API server has
// removed some of them meanwhile.
func (l *Log) News() ([]Request, error) {
	f, err := os.Open(l.file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	moved, err := l.moved(now)
	if err != nil {
		return nil, err
	}
	var news []Request
	for _, file := range moved {
		if news, err = l.rest(file, news); err != nil {
			return nil, err
		}
		l.offset = 0
	}
	l.read = now
	return l.append(news, f)
}

// moved are the files to read before the one that is written now: the one that was read last, and those
// that came after it, by their names, which have the time.
func (l *Log) moved(now os.FileInfo) ([]string, error) {
	if l.read == nil || os.SameFile(l.read, now) {
		return nil, nil
	}
	files, err := filepath.Glob(strings.TrimSuffix(l.file, ".log") + "-*.log")
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	slices.Sort(files)
	i := slices.IndexFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && os.SameFile(info, l.read)
	})
	if i < 0 {
		return nil, errors.New("cannot read all of the audit log: a part that was not read is removed; read it more often")
	}
	return files[i:], nil
}

// rest reads a file that is not written any more.
func (l *Log) rest(file string, news []Request) ([]Request, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer f.Close()
	return l.append(news, f)
}

// append reads a file from the offset, and moves that.
func (l *Log) append(news []Request, f *os.File) ([]Request, error) {
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
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
