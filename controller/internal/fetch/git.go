// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Tree is a folder of a git repository on a server.
type Tree struct {
	// Repository is its URL.
	Repository string
	// Path is the name of a branch, a tag or a commit, and then the folder.
	Path string
	// User and Password are for the server, if it needs them.
	User, Password string
	// Authorities are certificates in PEM that the server's may be signed by, besides the usual ones.
	Authorities []byte
	// Limit is how many bytes are written at most; 0 is 10Gi.
	Limit int64
}

// ReadSecret takes what the files of a mounted Secret have for the repository.
func (t *Tree) ReadSecret(folder string) error {
	var texts [3]string
	for i, name := range []string{"user", "pat", "ca.crt"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot read %s of repoSecret: %w", name, err)
		}
		texts[i] = strings.TrimSpace(string(text))
	}
	t.User, t.Password, t.Authorities = texts[0], texts[1], []byte(texts[2])
	if t.Password == "" && len(t.Authorities) == 0 {
		return errors.New("repoSecret has neither the key pat nor ca.crt: add one")
	}
	if t.User == "" {
		t.User = "git" // tokens need some user
	}
	return nil
}

const (
	// fetchedRef is the local name of what is fetched.
	fetchedRef = "refs/heads/fetched"
	// cached is how much of a repository is kept in memory.
	cached = 4 * cache.MiByte
	// large objects are not read into memory.
	large = int64(cache.MiByte)
)

// scratchPrefix is how the names of folders begin that hold a repository while it is fetched.
const scratchPrefix = ".fetched-"

// Fetch writes the files of the tree into a folder, and returns the commit. It replaces what an earlier
// fetch has written, and leaves what others have.
func (t Tree) Fetch(ctx context.Context, to string) (commit string, err error) {
	if err := sweep(to); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(to, scratchPrefix)
	if err != nil {
		return "", fmt.Errorf("cannot make a folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	limit := cmp.Or(t.Limit, defaultRoom)
	left := &room{limit, limit}
	storage := filesystem.NewStorageWithOptions(disk{osfs.New(scratch), left}, cache.NewObjectLRU(cached), filesystem.Options{LargeObjectThreshold: large})
	remote := git.NewRemote(storage, &config.RemoteConfig{Name: "origin", URLs: []string{t.Repository}})
	ref, folder, err := t.resolve(ctx, remote)
	if err != nil {
		return "", err
	}
	err = remote.FetchContext(ctx, &git.FetchOptions{
		RefSpecs: []config.RefSpec{config.RefSpec("+" + ref + ":" + fetchedRef)},
		Depth:    1, Tags: git.NoTags, Auth: t.auth(), CABundle: t.Authorities,
	})
	if errors.Is(err, git.ErrExactSHA1NotSupported) {
		return "", fmt.Errorf("%s gives no single commits: name a branch or a tag in repo", t.Repository)
	}
	if err != nil {
		return "", t.told(err)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return "", fmt.Errorf("cannot open the folder: %w", err)
	}
	defer root.Close()
	return t.write(storage, folder, root, left)
}

// sweep removes what fetches that were killed have left.
func sweep(folder string) error {
	left, err := os.ReadDir(folder)
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), scratchPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, entry.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot remove what an earlier fetch has left: %w", err)
	}
	return nil
}

// resolve asks the server which beginning of the path is a branch or a tag: the longest. Else it may
// be a commit.
func (t Tree) resolve(ctx context.Context, remote *git.Remote) (ref, folder string, err error) {
	refs, err := remote.ListContext(ctx, &git.ListOptions{Auth: t.auth(), CABundle: t.Authorities})
	if err != nil {
		return "", "", t.told(err)
	}
	known := map[string]bool{}
	for _, r := range refs {
		known[r.Name().String()] = true
	}
	parts := strings.Split(t.Path, "/")
	for n := len(parts); n > 0; n-- {
		name, rest := strings.Join(parts[:n], "/"), strings.Join(parts[n:], "/")
		for _, kind := range []string{"refs/heads/", "refs/tags/"} {
			if known[kind+name] {
				return kind + name, rest, nil
			}
		}
	}
	if plumbing.IsHash(parts[0]) {
		return parts[0], strings.Join(parts[1:], "/"), nil
	}
	return "", "", fmt.Errorf("%s has no branch or tag with which %s begins", t.Repository, t.Path)
}

// write writes what was fetched.
func (t Tree) write(storage *filesystem.Storage, folder string, root *os.Root, left *room) (commit string, err error) {
	ref, err := storage.Reference(fetchedRef)
	if err != nil {
		return "", fmt.Errorf("cannot find what was fetched: %w", err)
	}
	fetched, err := commitOf(storage, ref.Hash())
	if err != nil {
		return "", fmt.Errorf("%s is no commit: %w", t.Path, err)
	}
	tree, err := fetched.Tree()
	if err == nil && folder != "" {
		tree, err = tree.Tree(folder)
	}
	if errors.Is(err, object.ErrDirectoryNotFound) {
		return "", fmt.Errorf("%s has no folder %s in commit %s", t.Repository, folder, fetched.Hash)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the commit %s: %w", fetched.Hash, err)
	}
	return fetched.Hash.String(), (&writer{storage: storage, root: root, room: left}).tree(tree, ".")
}

// commitOf follows the object of a tag.
func commitOf(storage *filesystem.Storage, hash plumbing.Hash) (*object.Commit, error) {
	for {
		tag, err := object.GetTag(storage, hash)
		if err != nil {
			return object.GetCommit(storage, hash)
		}
		hash = tag.Target
	}
}

func (t Tree) auth() transport.AuthMethod {
	if t.Password == "" {
		return nil
	}
	return &http.BasicAuth{Username: t.User, Password: t.Password}
}

// told says what to do about an error. The library's own words may have a page of HTML.
func (t Tree) told(err error) error {
	var full *tooLarge
	switch {
	case errors.As(err, &full):
		return full
	case errors.Is(err, transport.ErrAuthenticationRequired) && t.Password == "":
		return fmt.Errorf("%s needs a user and a password: put them into a Secret (user, pat), and name it in repoSecret", t.Repository)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return fmt.Errorf("%s refuses the user and the password (user, pat) of repoSecret", t.Repository)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fmt.Errorf("there is no repository %s, or it does not show itself to this user", t.Repository)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return fmt.Errorf("the repository %s is empty", t.Repository)
	case errors.As(err, &x509.UnknownAuthorityError{}):
		return fmt.Errorf("the certificate of %s is signed by an unknown authority: add the authority's to repoSecret, as ca.crt", t.Repository)
	}
	return fmt.Errorf("cannot fetch %s: %w", t.Repository, err)
}
