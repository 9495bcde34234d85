// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mlbatch/mlbatch/controller/internal/taskstore"
)

// weather lets calls fail: before anything was made, or after. Calls that are made at once come in
// any order, so what a call meets depends on its key and on what that key has met before.
type weather struct {
	taskstore.Objects
	walk *walk
	seed uint64
	lock sync.Mutex
	met  map[string]int
}

func newWeather(w *walk) *weather {
	return &weather{Objects: w.objects, walk: w, seed: w.rand.Uint64(), met: map[string]int{}}
}

var errWeather = errors.New("the store fails")

func (w *weather) before(key string) error {
	return w.after(key, nil)
}

// after is of a call whose answer is lost.
func (w *weather) after(key string, err error) error {
	if w.walk.calm {
		return err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.met[key]++
	hash := fnv.New64a()
	fmt.Fprint(hash, w.seed, key, w.met[key])
	if rand.New(rand.NewPCG(hash.Sum64(), 2)).IntN(25) == 0 {
		return errWeather
	}
	return err
}

func (w *weather) Create(ctx context.Context, key string, body io.Reader, size int64) (bool, error) {
	if err := w.before(key); err != nil {
		return false, err
	}
	created, err := w.Objects.Create(ctx, key, body, size)
	return created, w.after(key, err)
}

func (w *weather) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	if err := w.before(key); err != nil {
		return nil, 0, err
	}
	return w.Objects.Open(ctx, key)
}

func (w *weather) Copy(ctx context.Context, from, to string) error {
	if err := w.before(to); err != nil {
		return err
	}
	return w.after(to, w.Objects.Copy(ctx, from, to))
}

// memory is a store that is only a map.
type memory struct {
	lock  sync.Mutex
	files map[string][]byte
}

func newMemory() *memory { return &memory{files: map[string][]byte{}} }

func (m *memory) Create(_ context.Context, key string, body io.Reader, _ int64) (bool, error) {
	all, err := io.ReadAll(body)
	m.lock.Lock()
	defer m.lock.Unlock()
	if _, there := m.files[key]; there || err != nil {
		return false, err
	}
	m.files[key] = all
	return true, nil
}

func (m *memory) Open(_ context.Context, key string) (io.ReadCloser, int64, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	all, there := m.files[key]
	if !there {
		return nil, 0, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(all)), int64(len(all)), nil
}

func (m *memory) List(_ context.Context, folder string, each func(string, int64)) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.files)) {
		if strings.HasPrefix(key, folder+"/") {
			each(key, int64(len(m.files[key])))
		}
	}
	return nil
}

func (m *memory) Copy(_ context.Context, from, to string) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.files[to] = m.files[from]
	return nil
}

func (m *memory) Same(_ context.Context, from, to string) (bool, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	other, there := m.files[to]
	return there && bytes.Equal(other, m.files[from]), nil
}

// server is an S3 server as far as the store uses one. It is reached without a network.
type server struct{ memory *memory }

func newServer() *server { return &server{newMemory()} }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
		return s.list(r), nil
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		return s.copy(r, key), nil
	case r.Method == http.MethodPut:
		return s.put(r, key)
	}
	s.memory.lock.Lock()
	defer s.memory.lock.Unlock()
	all, there := s.memory.files[key]
	if !there {
		return said(r, http.StatusNotFound, []byte("<Error><Code>NoSuchKey</Code></Error>")), nil
	}
	return said(r, http.StatusOK, all), nil
}

func said(r *http.Request, code int, body []byte) *http.Response {
	sum := md5.Sum(body)
	length := int64(len(body))
	header := http.Header{
		"Etag": {`"` + hex.EncodeToString(sum[:]) + `"`}, "Last-Modified": {time.Unix(1_800_000_000, 0).UTC().Format(http.TimeFormat)},
		"Content-Length": {strconv.FormatInt(length, 10)}, "Content-Type": {"application/xml"},
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: length, Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}
}

func (s *server) put(r *http.Request, key string) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if length := r.Header.Get("X-Amz-Decoded-Content-Length"); length != "" {
		body = decoded(body)
	}
	s.memory.lock.Lock()
	defer s.memory.lock.Unlock()
	if _, there := s.memory.files[key]; there && r.Header.Get("If-None-Match") == "*" {
		return said(r, http.StatusPreconditionFailed, []byte("<Error><Code>PreconditionFailed</Code></Error>")), nil
	}
	s.memory.files[key] = body
	return said(r, http.StatusOK, nil), nil
}

// decoded is a body without the signatures of its parts.
func decoded(body []byte) []byte {
	var all []byte
	for {
		head, rest, _ := bytes.Cut(body, []byte("\r\n"))
		size, _, _ := strings.Cut(string(head), ";")
		length, err := strconv.ParseInt(size, 16, 64)
		if err != nil || length == 0 || int(length) > len(rest) {
			return all
		}
		all = append(all, rest[:length]...)
		body = bytes.TrimPrefix(rest[length:], []byte("\r\n"))
	}
}

func (s *server) copy(r *http.Request, key string) *http.Response {
	from, _ := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
	from = strings.TrimPrefix(strings.TrimPrefix(from, "/"), "bucket/")
	s.memory.lock.Lock()
	defer s.memory.lock.Unlock()
	all, there := s.memory.files[from]
	if !there {
		return said(r, http.StatusNotFound, []byte("<Error><Code>NoSuchKey</Code></Error>"))
	}
	s.memory.files[key] = all
	return said(r, http.StatusOK, []byte(`<CopyObjectResult><ETag>"x"</ETag><LastModified>2026-11-21T00:00:00.000Z</LastModified></CopyObjectResult>`))
}

func (s *server) list(r *http.Request) *http.Response {
	type content struct {
		Key          string
		Size         int
		LastModified string
		ETag         string
	}
	type result struct {
		XMLName      xml.Name `xml:"ListBucketResult"`
		Name         string
		EncodingType string
		Contents     []content
	}
	found := result{Name: "bucket", EncodingType: "url"}
	s.memory.lock.Lock()
	defer s.memory.lock.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.memory.files)) {
		if strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
			found.Contents = append(found.Contents, content{url.QueryEscape(key), len(s.memory.files[key]), "2026-11-21T00:00:00.000Z", "x"})
		}
	}
	text, _ := xml.Marshal(found)
	return said(r, http.StatusOK, text)
}
