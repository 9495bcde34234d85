// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"
)

// Bucket is what an S3 server has below a prefix.
type Bucket struct {
	Endpoint, Name, Prefix, Region string
	// AccessKeyID and SecretAccessKey are both empty for access without keys.
	AccessKeyID, SecretAccessKey string
	// Authorities are certificates in PEM that the server's may be signed by, besides the usual ones.
	Authorities string
}

const (
	// atOnce is how many objects are copied at the same time.
	atOnce = 4
	// tries is how often the copy of one object is begun. What the client itself tries again are
	// requests, and not answers that break off.
	tries = 3
	// block is what a file system takes at least for a file or a folder.
	block = 4 << 10
	// every is the time between two lines of progress.
	every = 10 * time.Second
)

// Copy empties a folder and copies all objects below the prefix into it. Their blocks may have
// limit bytes together. Progress is written to log.
func (b Bucket) Copy(ctx context.Context, folder string, limit int64, log io.Writer) error {
	client, err := b.client()
	if err != nil {
		return err
	}
	root, err := emptied(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	c := &copying{Bucket: b, client: minio.Core{Client: client}, root: root, space: &space{limit: limit, taken: block}}
	fmt.Fprintf(log, "copying %s\n", b)
	stop := c.report(log)
	err = c.all(ctx)
	stop()
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "copied %s\n", c.space)
	return nil
}

// String names the bucket in sentences.
func (b Bucket) String() string {
	where := "bucket " + b.Name + " of " + b.Endpoint
	if folder := b.folder(); folder != "" {
		where = folder + " in " + where
	}
	return where
}

// folder is the prefix as a folder: train has train/1, and not training/1.
func (b Bucket) folder() string {
	if trimmed := strings.Trim(b.Prefix, "/"); trimmed != "" {
		return trimmed + "/"
	}
	return ""
}

func (b Bucket) client() (*minio.Client, error) {
	endpoint, err := url.Parse(b.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("the endpoint is no URL: %w", err)
	}
	transport, err := Transport(endpoint.Scheme == "https", b.Authorities)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:     credentials.NewStaticV4(b.AccessKeyID, b.SecretAccessKey, ""),
		Secure:    endpoint.Scheme == "https",
		Region:    b.Region,
		Transport: transport,
	})
	if err != nil {
		return nil, fmt.Errorf("the endpoint is not that of an S3 server: %w", err)
	}
	return client, nil
}

// Transport is that of the S3 library, which trusts these certificates in PEM, too.
func Transport(secure bool, authorities string) (*http.Transport, error) {
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("cannot make connections: %w", err)
	}
	if !secure || authorities == "" {
		return transport, nil
	}
	trusted, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("cannot read the usual authorities: %w", err)
	}
	if !trusted.AppendCertsFromPEM([]byte(authorities)) {
		return nil, errors.New("ca.crt in the Secret of the DataSet has no certificate in PEM: correct it")
	}
	transport.TLSClientConfig.RootCAs = trusted
	return transport, nil
}

// emptied is a folder without what a copy that was killed has left in it.
func emptied(folder string) (*os.Root, error) {
	if err := os.MkdirAll(folder, folders); err != nil {
		return nil, fmt.Errorf("cannot make the folder: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder: %w", err)
	}
	left, err := os.ReadDir(folder)
	for _, entry := range left {
		err = errors.Join(err, root.RemoveAll(entry.Name()))
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("cannot empty the folder: %w", err)
	}
	return root, nil
}

// Modes of what is copied: the program reads it as any user.
const (
	folders os.FileMode = 0o755
	files   os.FileMode = 0o644
)

// copying is one Copy.
type copying struct {
	Bucket
	client minio.Core
	root   *os.Root
	space  *space
	// last is the folder of the object before. Objects are listed by name.
	last string
}

// all lists the objects, and has some copied meanwhile. The first error ends everything.
func (c *copying) all(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(1 + atOnce)
	group.Go(func() error {
		for object := range c.client.ListObjectsIter(ctx, c.Name, minio.ListObjectsOptions{Prefix: c.folder(), Recursive: true}) {
			if object.Err != nil {
				return c.explained(object.Err, "")
			}
			name, err := c.begin(object)
			if err != nil {
				return err
			}
			if name != "" {
				group.Go(func() error { return c.one(ctx, object, name) })
			}
		}
		return ctx.Err()
	})
	return group.Wait()
}

// begin reserves the space of an object and makes its folder. It returns the path of its file,
// which is empty if the object only means a folder.
func (c *copying) begin(object minio.ObjectInfo) (string, error) {
	name := strings.TrimPrefix(object.Key, c.folder())
	if name == "" { // the folder of the prefix
		return "", nil
	}
	folder, isFolder := strings.CutSuffix(name, "/")
	if folder == "" || path.Clean("/"+name) != "/"+folder || strings.ContainsRune(name, 0) || isFolder && object.Size > 0 {
		return "", misnamed(object.Key)
	}
	if isFolder {
		return "", c.makeFolder(object.Key, folder)
	}
	if err := c.makeFolder(object.Key, path.Dir(name)); err != nil {
		return "", err
	}
	return name, c.space.take(blocks(object.Size))
}

// makeFolder makes a folder and those above it, each of which takes a block.
func (c *copying) makeFolder(key, folder string) error {
	if folder == "." || folder == c.last {
		return nil
	}
	if err := c.makeFolder(key, path.Dir(folder)); err != nil {
		return err
	}
	c.last = folder
	err := c.root.Mkdir(folder, folders)
	if err == nil {
		return c.space.take(block)
	}
	if there, _ := c.root.Stat(folder); there != nil && there.IsDir() {
		return nil
	}
	if errors.Is(err, os.ErrExist) {
		err = syscall.ENOTDIR
	}
	return unwritten(key, err)
}

// one copies an object.
func (c *copying) one(ctx context.Context, object minio.ObjectInfo, name string) error {
	var err error
	for range tries {
		if err = c.try(ctx, object, name); !errors.Is(err, errBrokenOff) {
			break
		}
	}
	return err
}

// errBrokenOff is of an answer that ended too soon.
var errBrokenOff = errors.New("the answer broke off")

func (c *copying) try(ctx context.Context, object minio.ObjectInfo, name string) error {
	var same minio.GetObjectOptions
	if object.ETag != "" {
		if err := same.SetMatchETag(object.ETag); err != nil {
			return fmt.Errorf("cannot ask for object %q: %w", object.Key, err)
		}
	}
	body, _, _, err := c.client.GetObject(ctx, c.Name, object.Key, same)
	if err != nil {
		return c.explained(err, object.Key)
	}
	defer body.Close()
	file, err := c.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, files)
	if err != nil {
		return unwritten(object.Key, err)
	}
	source := &reader{Reader: body}
	_, err = io.CopyN(file, source, object.Size)
	if errors.Is(err, io.EOF) {
		source.err = io.ErrUnexpectedEOF
	}
	err = errors.Join(err, file.Close())
	if source.err != nil {
		return fmt.Errorf("cannot read object %q to its end: %w: %w", object.Key, errBrokenOff, source.err)
	}
	if err != nil {
		return unwritten(object.Key, err)
	}
	c.space.done(object.Size)
	return nil
}

// reader tells an error of the source from one of the target.
type reader struct {
	io.Reader
	err error
}

// Read remembers how the source failed.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func misnamed(key string) error {
	return fmt.Errorf("object %q cannot be a file in a folder, because of its name: rename it", key)
}

// unwritten says why an object is not a file.
func unwritten(key string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("object %q cannot be copied, because a name in its path is that of an object and of a folder: rename one", key)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return misnamed(key)
	}
	return fmt.Errorf("cannot write object %q: %w", key, err)
}

// explained says what to do about an answer of the server, about an object if there is a key.
func (c *copying) explained(err error, key string) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.As(err, &x509.UnknownAuthorityError{}) {
		return fmt.Errorf("the certificate of %s is signed by an unknown authority: add the authority's to the Secret of the DataSet, as ca.crt", c.Endpoint)
	}
	answer := minio.ToErrorResponse(err)
	switch answer.Code {
	case minio.NoSuchBucket:
		return fmt.Errorf("there is no bucket %s at %s: correct bucket or endpoint of the DataSet", c.Name, c.Endpoint)
	case minio.NoSuchKey, minio.PreconditionFailed:
		return fmt.Errorf("object %q changed while it was copied: run this when nobody writes to the bucket", key)
	case minio.InvalidAccessKeyID:
		return fmt.Errorf("%s does not know the access key: correct accessKeyID in the Secret of the DataSet", c.Endpoint)
	case minio.SignatureDoesNotMatch:
		return fmt.Errorf("%s refuses the secret access key: correct secretAccessKey in the Secret of the DataSet", c.Endpoint)
	}
	if answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized {
		if c.AccessKeyID == "" {
			return fmt.Errorf("bucket %s of %s cannot be read without keys: set s3.secretName of the DataSet", c.Name, c.Endpoint)
		}
		return fmt.Errorf("access to bucket %s of %s is denied: its owner has to let the key of the DataSet list and read it", c.Name, c.Endpoint)
	}
	return fmt.Errorf("cannot read %s: %w", c.Bucket, err)
}
