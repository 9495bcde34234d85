// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"

	helmregistry "helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// isFolder checks the registry folder to push to.
func isFolder(place string) error {
	host, folder, _ := strings.Cut(place, "/")
	if _, err := registry.ParseReference(place); err != nil || folder != path.Clean(folder) || !strings.ContainsAny(host, ".:") {
		return fmt.Errorf("-registry: %q is not a registry folder; write HOST[:PORT]/FOLDER, such as ghcr.io/mlbatch", place)
	}
	return nil
}

// onThisMachine reports whether a registry is local, and is used without TLS, as in Docker.
func onThisMachine(ref registry.Reference) bool {
	host, _, err := net.SplitHostPort(ref.Registry)
	if err != nil {
		host = ref.Registry
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// pushImage pushes the image in an archive with the tag of the reference, and then its signature.
func (r *release) pushImage(ctx context.Context, archive, reference string) error {
	ref, err := registry.ParseReference(reference)
	if err != nil {
		return fmt.Errorf("cannot push the image %s: %w", reference, err)
	}
	images, err := oci.NewFromTar(ctx, archive)
	if err != nil {
		return fmt.Errorf("cannot read the image archive %s: %w", archive, err)
	}
	logins, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return fmt.Errorf("cannot read the credentials of docker login: %w", err)
	}
	there := &remote.Repository{
		Reference: ref, PlainHTTP: onThisMachine(ref),
		Client: &auth.Client{Client: retry.DefaultClient, Credential: credentials.Credential(logins), Cache: auth.NewCache()},
	}
	pushed, err := oras.Copy(ctx, images, ref.Reference, there, ref.Reference, oras.DefaultCopyOptions)
	if err != nil {
		return fmt.Errorf("cannot push the image %s: %w", reference, err)
	}
	fmt.Fprintf(r.progress, "pushed %s@%s\n", reference, pushed.Digest)
	if r.signers.blobs == nil {
		return nil
	}
	return r.signers.pushSignature(ctx, there, pushed)
}

// pushChart does what helm push does, but with a fixed creation time, so that the digest is
// always the same. The provenance beside the archive goes with it.
func pushChart(archive, reference string, progress io.Writer) error {
	ref, err := registry.ParseReference(reference)
	if err != nil {
		return fmt.Errorf("cannot push the chart %s: %w", reference, err)
	}
	chart, err := os.ReadFile(archive)
	if err != nil {
		return fmt.Errorf("cannot read the packaged chart: %w", err)
	}
	options := []helmregistry.ClientOption{helmregistry.ClientOptWriter(io.Discard)}
	if onThisMachine(ref) {
		options = append(options, helmregistry.ClientOptPlainHTTP())
	}
	push := []helmregistry.PushOption{helmregistry.PushOptCreationTime("1970-01-01T00:00:00Z")}
	switch prov, err := os.ReadFile(archive + ".prov"); {
	case err == nil:
		push = append(push, helmregistry.PushOptProvData(prov))
	case !os.IsNotExist(err):
		return fmt.Errorf("cannot read the provenance of the chart: %w", err)
	}
	client, err := helmregistry.NewClient(options...)
	if err != nil {
		return fmt.Errorf("cannot set up Helm: %w", err)
	}
	pushed, err := client.Push(chart, reference, push...)
	if err != nil {
		return fmt.Errorf("cannot push the chart %s: %w", reference, err)
	}
	fmt.Fprintf(progress, "pushed %s@%s\n", reference, pushed.Manifest.Digest)
	return nil
}
