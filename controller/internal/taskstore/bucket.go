// SPDX-License-Identifier: Apache-2.0

package taskstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
)

// Bucket is what an S3 server has below a prefix.
type Bucket struct {
	client *minio.Client
	name   string
	// prefix is empty or ends in a slash.
	prefix string
}

// Access says which bucket, and with which keys. Both keys are empty for access without.
type Access struct {
	Endpoint, Name, Prefix, Region string
	AccessKeyID, SecretAccessKey   string
	// Transport is http.DefaultTransport if it is nil.
	Transport http.RoundTripper
}

// OpenBucket makes no request.
func OpenBucket(a Access) (*Bucket, error) {
	endpoint, err := url.Parse(a.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("%w: the endpoint is no URL: %w", taskqueue.ErrHopeless, err)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(a.AccessKeyID, a.SecretAccessKey, ""),
		Secure: endpoint.Scheme == "https", Region: a.Region, Transport: a.Transport, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the endpoint is not that of an S3 server: %w", taskqueue.ErrHopeless, err)
	}
	prefix := strings.Trim(a.Prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Bucket{client: client, name: a.Name, prefix: prefix}, nil
}

// tooSkewed is of a server whose clock is another one: one of them may be corrected soon.
const tooSkewed = "RequestTimeTooSkewed"

// explained tells errors that stay from those that go.
func explained(err error) error {
	answer := minio.ToErrorResponse(err)
	switch answer.Code {
	case tooSkewed:
		return err
	case minio.NoSuchKey:
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case minio.NoSuchBucket:
		return fmt.Errorf("%w: there is no such bucket: correct bucket or endpoint of the DataSet", taskqueue.ErrHopeless)
	case minio.NotImplemented:
		return fmt.Errorf("%w: the bucket does not honour If-None-Match, without which two results of a task could be accepted", taskqueue.ErrHopeless)
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case http.StatusForbidden, http.StatusUnauthorized:
		return fmt.Errorf("%w: access to the bucket is denied: its owner has to let the key of the DataSet list, read and write it: %w", taskqueue.ErrHopeless, err)
	}
	return err
}

// Create is one PUT with If-None-Match. A server may refuse it before it has read the body, and
// break off: what is there then was there before, or is what was sent.
func (b *Bucket) Create(ctx context.Context, key string, body io.Reader, size int64) (bool, error) {
	if size < 0 {
		return false, errors.New("an object needs a size: send Content-Length")
	}
	once := minio.PutObjectOptions{DisableMultipart: true}
	once.SetMatchETagExcept("*")
	_, err := b.client.PutObject(ctx, b.name, b.prefix+key, body, size, once)
	if err == nil {
		return true, nil
	}
	answer := minio.ToErrorResponse(err)
	if answer.StatusCode == http.StatusPreconditionFailed {
		return false, nil
	}
	if answer.StatusCode == 0 && ctx.Err() == nil {
		if _, missing := b.client.StatObject(ctx, b.name, b.prefix+key, minio.StatObjectOptions{}); missing == nil {
			return false, nil
		}
	}
	return false, explained(err)
}

// Open reads an object.
func (b *Bucket) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	core := minio.Core{Client: b.client}
	body, info, _, err := core.GetObject(ctx, b.name, b.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return nil, 0, explained(err)
	}
	return body, info.Size, nil
}

// List leaves out objects that only mean folders.
func (b *Bucket) List(ctx context.Context, folder string, each func(key string, size int64)) error {
	prefix := b.prefix
	if folder != "." {
		prefix += folder + "/"
	}
	for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return explained(object.Err)
		}
		if !strings.HasSuffix(object.Key, "/") {
			each(strings.TrimPrefix(object.Key, b.prefix), object.Size)
		}
	}
	return ctx.Err()
}

// Copy is made by the server.
func (b *Bucket) Copy(ctx context.Context, from, to string) error {
	_, err := b.client.CopyObject(ctx,
		minio.CopyDestOptions{Bucket: b.name, Object: b.prefix + to},
		minio.CopySrcOptions{Bucket: b.name, Object: b.prefix + from})
	if err != nil {
		return explained(err)
	}
	return nil
}

// Same compares what the server says of their content.
func (b *Bucket) Same(ctx context.Context, from, to string) (bool, error) {
	first, err := b.client.StatObject(ctx, b.name, b.prefix+from, minio.StatObjectOptions{})
	if err != nil {
		return false, explained(err)
	}
	second, err := b.client.StatObject(ctx, b.name, b.prefix+to, minio.StatObjectOptions{})
	if err != nil {
		if err = explained(err); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	return first.ETag == second.ETag && first.Size == second.Size, nil
}
