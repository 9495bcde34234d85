// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io/fs"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/minio/minio-go/v7"

	"github.com/mlbatch/mlbatch/controller/internal/fetch"
	"github.com/mlbatch/mlbatch/test/s3server"
)

// owned is the bucket of a server, read with all rights.
func owned(server s3server.Server) fetch.Bucket {
	return fetch.Bucket{
		Endpoint: server.Endpoint, Name: s3server.Bucket, AccessKeyID: s3server.AccessKeyID, SecretAccessKey: s3server.SecretAccessKey,
	}
}

func put(t *testing.T, server s3server.Server, objects map[string]string) {
	t.Helper()
	for key, text := range objects {
		if _, err := server.Client.PutObject(t.Context(), s3server.Bucket, key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// found has the files below a folder, and its empty folders, whose names end in a slash.
func found(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		if err != nil || name == "." {
			return err
		}
		delete(all, filepath.Dir(name)+"/")
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if entry.IsDir() {
			all[name+"/"] = info.Mode().String()
			return nil
		}
		text, err := os.ReadFile(path)
		all[name] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const plenty = 1 << 30

func TestObjectsBecomeFiles(t *testing.T) {
	server := s3server.Start(t)
	objects := map[string]string{
		"train/a": "1", "train/b/c/d ü$(x).txt": "2", "train/empty": "", "train/folder/": "", "training/e": "3", "f": "4", "train/b.c": "5",
	}
	for i := range 1100 { // more than a page of the list
		objects[fmt.Sprintf("many/%d/%d", i%7, i)] = fmt.Sprint(i)
	}
	put(t, server, objects)
	for prefix, want := range map[string]map[string]string{
		"train": {
			"a": "-rw-r--r-- 1", "b/c/d ü$(x).txt": "-rw-r--r-- 2", "empty": "-rw-r--r-- ", "folder/": "drwxr-xr-x", "b.c": "-rw-r--r-- 5",
		},
		"train/b/": {"c/d ü$(x).txt": "-rw-r--r-- 2"},
		"none":     {},
	} {
		folder := t.TempDir()
		bucket := owned(server)
		bucket.Prefix = prefix
		if err := bucket.Copy(t.Context(), folder, plenty, t.Output()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found(t, folder)); diff != "" {
			t.Errorf("of %s (-want +got)\n%s", prefix, diff)
		}
	}
	folder, log := t.TempDir(), &bytes.Buffer{}
	if err := owned(server).Copy(t.Context(), folder, plenty, log); err != nil {
		t.Fatal(err)
	}
	if got := len(found(t, folder)); got != len(objects) {
		t.Errorf("%d files and empty folders are there, of %d", got, len(objects))
	}
	if want := "copying bucket pictures of " + server.Endpoint + "\ncopied 1106 objects, 3295\n"; log.String() != want {
		t.Errorf("the log is %q, and should be %q", log, want)
	}
}

// What a container that was killed has left is no part of the data.
func TestACopyBeginsClean(t *testing.T) {
	server := s3server.Start(t)
	put(t, server, map[string]string{"a": "1"})
	folder := t.TempDir()
	for _, left := range []string{"a", "b", "c/d"} {
		path := filepath.Join(folder, left)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := owned(server).Copy(t.Context(), folder, plenty, t.Output()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "-rw-r--r-- 1"}, found(t, folder)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestACopyThatFailsSaysWhatToDo(t *testing.T) {
	server := s3server.Start(t)
	put(t, server, map[string]string{"a/b": strings.Repeat("x", 5000), "a/c": "1"})
	for name, row := range map[string]struct {
		change func(*fetch.Bucket)
		limit  int64
		want   string
	}{
		"all of the limit":    {func(*fetch.Bucket) {}, 5 * 4096, ""},
		"over the limit":      {func(*fetch.Bucket) {}, 5*4096 - 1, "the objects have more than 19Ki: raise s3.copyLimit of the DataSet, or narrow its prefix"},
		"another bucket":      {func(b *fetch.Bucket) { b.Name = "other" }, plenty, "there is no bucket other at ENDPOINT: correct bucket or endpoint of the DataSet"},
		"an unknown key":      {func(b *fetch.Bucket) { b.AccessKeyID = "other" }, plenty, "cannot read bucket pictures of ENDPOINT: No user exists with the provided access key ID."},
		"a wrong key":         {func(b *fetch.Bucket) { b.SecretAccessKey = "other" }, plenty, "ENDPOINT refuses the secret access key: correct secretAccessKey in the Secret of the DataSet"},
		"no key":              {func(b *fetch.Bucket) { b.AccessKeyID, b.SecretAccessKey = "", "" }, plenty, "bucket pictures of ENDPOINT cannot be read without keys: set s3.secretName of the DataSet"},
		"the region":          {func(b *fetch.Bucket) { b.Region = "us-east-1" }, plenty, ""},
		"a wrong key, region": {func(b *fetch.Bucket) { b.SecretAccessKey, b.Region = "other", "us-east-1" }, plenty, "ENDPOINT refuses the secret access key: correct secretAccessKey in the Secret of the DataSet"},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := owned(server)
			row.change(&bucket)
			err := bucket.Copy(t.Context(), t.TempDir(), row.limit, t.Output())
			if want := strings.ReplaceAll(row.want, "ENDPOINT", server.Endpoint); fmt.Sprint(err) != want && (err != nil || want != "") {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// public lets everybody read a bucket.
const public = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": ["s3:ListBucket", "s3:GetObject"],
	"Resource": ["arn:aws:s3:::pictures", "arn:aws:s3:::pictures/*"]}]}`

func TestAPublicBucketNeedsNoKeys(t *testing.T) {
	server := s3server.Start(t)
	put(t, server, map[string]string{"a": "1"})
	if err := server.Client.SetBucketPolicy(t.Context(), s3server.Bucket, public); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := (fetch.Bucket{Endpoint: server.Endpoint, Name: s3server.Bucket}).Copy(t.Context(), folder, plenty, t.Output()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "-rw-r--r-- 1"}, found(t, folder)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The real server refuses such names, and others store them.
func TestNamesThatAreNoFiles(t *testing.T) {
	const (
		name = " cannot be a file in a folder, because of its name: rename it"
		both = " cannot be copied, because a name in its path is that of an object and of a folder: rename one"
	)
	long := strings.Repeat("a", 300)
	for problem, rows := range map[string][][]string{
		name: {
			{"../a"}, {"a/../../b"}, {"a/./b"}, {".."}, {"."}, {"/etc/passwd"}, {"/"}, {"//"}, {"a//b"}, {"full/"}, {long}, {long + "/a"},
		},
		both: {{"a", "a/b"}, {"a/", "a"}},
		"":   {{"...", "..a", "a..", "~", `\..\a`, "-rf"}},
	} {
		for _, keys := range rows {
			t.Run(strings.Join(keys, " "), func(t *testing.T) {
				folder := filepath.Join(t.TempDir(), "data")
				bucket := fetch.Bucket{Endpoint: listing(t, keys), Name: "abc", Region: "r"}
				err := bucket.Copy(t.Context(), folder, plenty, t.Output())
				if problem == "" && (err != nil || len(found(t, folder)) != len(keys)) {
					t.Errorf("got %v, and %v", err, found(t, folder))
				}
				if problem != "" && !slices.ContainsFunc(keys, func(key string) bool { return fmt.Sprint(err) == fmt.Sprintf("object %q", key)+problem }) {
					t.Errorf("got %v", err)
				}
				if left, _ := os.ReadDir(filepath.Dir(folder)); len(left) != 1 {
					t.Errorf("outside the folder there is %v", left)
				}
			})
		}
	}
}

// What other servers answer than the real one here.
func TestAnswersAreExplained(t *testing.T) {
	refusal := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>No.</Message></Error>", code)
		}
	}
	short := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1")
		dated(w)
	}
	whole := page([]string{"a"})
	for name, row := range map[string]struct {
		list, get http.HandlerFunc
		want      string
	}{
		"the key is unknown": {refusal(403, "InvalidAccessKeyId"), nil, "ENDPOINT does not know the access key: correct accessKeyID in the Secret of the DataSet"},
		"the key may not":    {refusal(403, "AccessDenied"), nil, "access to bucket abc of ENDPOINT is denied: its owner has to let the key of the DataSet list and read it"},
		"something else":     {refusal(400, "InvalidRequest"), nil, "cannot read bucket abc of ENDPOINT: No."},
		"another object":     {whole, refusal(412, "PreconditionFailed"), `object "a" changed while it was copied: run this when nobody writes to the bucket`},
		"no object":          {whole, refusal(404, "NoSuchKey"), `object "a" changed while it was copied: run this when nobody writes to the bucket`},
		"half an object":     {whole, short, `cannot read object "a" to its end: the answer broke off: unexpected EOF`},
		"half in chunks":     {whole, func(w http.ResponseWriter, _ *http.Request) { dated(w) }, `cannot read object "a" to its end: the answer broke off: unexpected EOF`},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := fetch.Bucket{Endpoint: answering(t, row.list, row.get), Name: "abc", Region: "r", AccessKeyID: "a", SecretAccessKey: "b"}
			err := bucket.Copy(t.Context(), t.TempDir(), plenty, t.Output())
			if want := strings.ReplaceAll(row.want, "ENDPOINT", bucket.Endpoint); fmt.Sprint(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// A server cannot fill the disk by what it says of an object.
func TestAnObjectWithoutEnd(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "<ListBucketResult><Contents><Key>a</Key><Size>%d</Size></Contents></ListBucketResult>", math.MaxInt64)
	}
	err := fetch.Bucket{Endpoint: answering(t, endless, nil), Name: "abc", Region: "r"}.Copy(t.Context(), t.TempDir(), plenty, t.Output())
	if err == nil || !strings.HasPrefix(err.Error(), "the objects have more than 1Gi: ") {
		t.Errorf("got %v", err)
	}
}

// A connection that breaks does not end the copy.
func TestAnObjectIsReadAgain(t *testing.T) {
	var requests atomic.Int32
	endpoint := answering(t, page([]string{"a"}), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1")
		dated(w)
		if requests.Add(1) == 3 {
			fmt.Fprint(w, "x")
		}
	})
	folder := t.TempDir()
	if err := (fetch.Bucket{Endpoint: endpoint, Name: "abc", Region: "r"}).Copy(t.Context(), folder, plenty, t.Output()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "-rw-r--r-- x"}, found(t, folder)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// listing is a server of objects, each of which has one byte, but for folders.
func listing(t *testing.T, keys []string) (endpoint string) {
	t.Helper()
	return answering(t, page(keys), func(w http.ResponseWriter, _ *http.Request) {
		dated(w)
		fmt.Fprint(w, "x")
	})
}

// answering is a server that lists and gets.
func answering(t *testing.T, list, get http.HandlerFunc) (endpoint string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("list-type") != "" {
			list(w, r)
			return
		}
		get(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheSecretHasAnAuthority(t *testing.T) {
	list := page([]string{"a"})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("list-type") != "" {
			list(w, r)
			return
		}
		dated(w)
		fmt.Fprint(w, "x")
	}))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = log.New(t.Output(), "", 0)
	own := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for authorities, want := range map[string]string{
		own:    "<nil>",
		"":     "the certificate of ENDPOINT is signed by an unknown authority: add the authority's to the Secret of the DataSet, as ca.crt",
		"none": "ca.crt in the Secret of the DataSet has no certificate in PEM: correct it",
	} {
		folder := t.TempDir()
		bucket := fetch.Bucket{Endpoint: server.URL, Name: "pictures", Region: "us-east-1", Authorities: authorities}
		err := bucket.Copy(t.Context(), folder, plenty, t.Output())
		if want := strings.ReplaceAll(want, "ENDPOINT", server.URL); fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if authorities == own && len(found(t, folder)) != 1 {
			t.Error("nothing is copied")
		}
	}
}

// page is a list of objects.
func page(keys []string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<ListBucketResult>")
		for _, key := range keys {
			size := 1
			if strings.HasSuffix(key, "/") && key != "full/" {
				size = 0
			}
			fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", key, size)
		}
		fmt.Fprint(w, "</ListBucketResult>")
	}
}

// dated begins the answer to a request for an object.
func dated(w http.ResponseWriter) {
	w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	w.WriteHeader(http.StatusOK)
}
