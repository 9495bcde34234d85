// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// The media type and the annotation of signatures of images, from
// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md.
const (
	simpleSigning   = "application/vnd.dev.cosign.simplesigning.v1+json"
	cosignSignature = "dev.cosignproject.cosign/signature"
)

// pushSignature pushes the signature of an image to the tag at which cosign looks for it.
func (s signers) pushSignature(ctx context.Context, there *remote.Repository, image ocispec.Descriptor) error {
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`,
		there.Reference.Registry+"/"+there.Reference.Repository, image.Digest)
	signature, err := s.sign(payload)
	if err != nil {
		return err
	}
	layer := content.NewDescriptorFromBytes(simpleSigning, payload)
	layer.Annotations = map[string]string{cosignSignature: signature}
	config := fmt.Appendf(nil, `{"architecture":"","os":"","config":{},"rootfs":{"type":"layers","diff_ids":[%q]}}`, layer.Digest)
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: content.NewDescriptorFromBytes(ocispec.MediaTypeImageConfig, config), Layers: []ocispec.Descriptor{layer},
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("cannot describe the signature: %w", err)
	}
	for blob, descriptor := range map[string]ocispec.Descriptor{string(payload): layer, string(config): manifest.Config} {
		if err := there.Push(ctx, descriptor, bytes.NewReader([]byte(blob))); err != nil {
			return fmt.Errorf("cannot push the signature: %w", err)
		}
	}
	tag := image.Digest.Algorithm().String() + "-" + image.Digest.Encoded() + ".sig"
	if err := there.PushReference(ctx, content.NewDescriptorFromBytes(manifest.MediaType, text), bytes.NewReader(text), tag); err != nil {
		return fmt.Errorf("cannot push the signature: %w", err)
	}
	return nil
}
