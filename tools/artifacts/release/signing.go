// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/provenance"
)

// signers have the keys with which a release is signed. What has no key is not signed.
type signers struct {
	// charts sign as helm package --sign does.
	charts *provenance.Signatory
	// blobs sign the checksums and the images that are pushed, as cosign does with a key of its own.
	blobs *ecdsa.PrivateKey
}

// readSigners reads a keyring of GnuPG with the key of user, and a private key in PEM. Empty names are of none.
func readSigners(keyring, user, key string) (s signers, err error) {
	if (keyring == "") != (user == "") {
		return s, errors.New("-keyring and -keyring-user belong together: give both or none")
	}
	if keyring != "" {
		if s.charts, err = chartKey(keyring, user); err != nil {
			return s, fmt.Errorf("cannot sign charts with the key of %q in %s: %w", user, keyring, err)
		}
	}
	if key != "" {
		if s.blobs, err = blobKey(key); err != nil {
			return s, fmt.Errorf("cannot sign images with %s: %w", key, err)
		}
	}
	return s, nil
}

func chartKey(keyring, user string) (*provenance.Signatory, error) {
	signatory, err := provenance.NewFromKeyring(keyring, user)
	if err != nil {
		return nil, err
	}
	return signatory, signatory.DecryptKey(func(string) ([]byte, error) {
		return nil, errors.New("it has a passphrase; export it without one, to a file that only you can read")
	})
}

func blobKey(file string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("it is no PEM file with an unencrypted PRIVATE KEY (PKCS #8)")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, ok := key.(*ecdsa.PrivateKey); ok && key.Curve == elliptic.P256() {
		return key, nil
	}
	return nil, errors.New("its key is not of the kind ECDSA P-256, which cosign uses")
}

// sign returns a signature as cosign writes it.
func (s signers) sign(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	signature, err := ecdsa.SignASN1(rand.Reader, s.blobs, sum[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign: %w", err)
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}

// writeSignatures writes the provenance of each chart, and the signature of the checksums, which are of all files. It
// removes those of an earlier release that nothing replaces.
func (r *release) writeSignatures(context.Context) error {
	signatures := map[string]func() (string, error){checksums + ".sig": r.signChecksums}
	for _, chart := range r.bundle.Charts {
		signatures[chart.FileName()+".prov"] = func() (string, error) { return r.signChart(chart.FileName()) }
	}
	for name, sign := range signatures {
		text, err := sign()
		if err != nil {
			return fmt.Errorf("cannot make %s: %w", name, err)
		}
		path := filepath.Join(r.out, name)
		if text == "" {
			err = os.Remove(path)
			if os.IsNotExist(err) {
				err = nil
			}
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
			fmt.Fprintln(r.progress, path)
		}
		if err != nil {
			return fmt.Errorf("cannot replace the signature %s: %w", path, err)
		}
	}
	return nil
}

// signChart returns nothing without a key.
func (r *release) signChart(file string) (string, error) {
	if r.signers.charts == nil {
		return "", nil
	}
	return r.signers.charts.ClearSign(filepath.Join(r.out, file))
}

// signChecksums returns nothing without a key.
func (r *release) signChecksums() (string, error) {
	if r.signers.blobs == nil {
		return "", nil
	}
	sums, err := os.ReadFile(filepath.Join(r.out, checksums))
	if err != nil {
		return "", err
	}
	return r.signers.sign(sums)
}
