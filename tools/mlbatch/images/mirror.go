// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Mirror is a folder of a registry that has copies of images.
type Mirror struct {
	// Folder is the registry and the folder, such as registry.example.com/mlbatch.
	Folder string
	// Progress is told about each copy.
	Progress *printing.Lines
	// Transport is how registries are reached; nil is over the network.
	Transport http.RoundTripper
}

// Copy copies the images, for all their architectures, with the credentials of docker login. What is
// there already is not sent again, so it may be repeated after an error.
func (m Mirror) Copy(ctx context.Context, all []Image) error {
	options := []remote.Option{remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithContext(ctx)}
	if m.Transport != nil {
		options = append(options, remote.WithTransport(m.Transport))
	}
	puller, err := remote.NewPuller(options...)
	if err != nil {
		return fmt.Errorf("cannot pull images: %w", err)
	}
	pusher, err := remote.NewPusher(options...)
	if err != nil {
		return fmt.Errorf("cannot push images: %w", err)
	}
	copied := map[string]bool{}
	for n, image := range all {
		if copied[image.Reference] {
			continue
		}
		copied[image.Reference] = true
		from, to, err := mirrored(image.Reference, m.Folder)
		if err != nil {
			return err
		}
		m.Progress.Printf("%d of %d: copying %s to %s", n+1, len(all), from.Name(), to.Name())
		if err := copyOne(ctx, puller, pusher, from, to); err != nil {
			return err
		}
	}
	return nil
}

func copyOne(ctx context.Context, puller *remote.Puller, pusher *remote.Pusher, from, to name.Reference) error {
	image, err := puller.Get(ctx, from)
	if err != nil {
		return fmt.Errorf("cannot pull %s: %w", from.Name(), err)
	}
	if err := pusher.Push(ctx, to, image); err != nil {
		return fmt.Errorf("cannot push %s: %w; log in with docker login, and then run this again: it resumes", to.Name(), err)
	}
	return nil
}
