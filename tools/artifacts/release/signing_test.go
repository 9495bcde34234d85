// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/provenance"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// helmTests is the user of the key with which Helm tests the same.
const helmTests = "helm-testing@helm.sh"

// keyring is a file of Helm's tests: those with a secret key, and others with the public one.
func keyring(t *testing.T, file string) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v3").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "pkg", "provenance", "testdata", file)
}

// keyFile writes a private key as openssl does.
func keyFile(t *testing.T, key any) string {
	t.Helper()
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// verify checks a signature as cosign does with a public key.
func verify(t *testing.T, key *ecdsa.PrivateKey, content []byte, signature string) {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(signature)
	if sum := sha256.Sum256(content); err != nil || !ecdsa.VerifyASN1(&key.PublicKey, sum[:], text) {
		t.Errorf("%q is not the signature of %s (%v)", signature, content, err)
	}
}

func TestASignedReleaseCanBeVerified(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	folder := strings.TrimPrefix(server.URL, "http://") + "/some/mlbatch"
	r := released(t, folder)
	key := newKey(t, elliptic.P256())
	var err error
	if r.signers, err = readSigners(keyring(t, "helm-test-key.secret"), helmTests, keyFile(t, key)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it can be repeated
		if err := r.writeSignatures(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.push(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	written := files(t, r.out)
	verify(t, key, written["SHA256SUMS"], string(written["SHA256SUMS.sig"]))
	for _, chart := range r.bundle.Charts {
		chartIsSigned(t, folder+"/charts/"+chart.Name+":"+chart.Version, filepath.Join(r.out, chart.FileName()))
	}
	for _, image := range []string{r.versions.ControllerImage(), r.versions.AgentImage()} {
		imageIsSigned(t, image, key)
	}

	r.signers = signers{}
	if err := r.writeSignatures(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name := range files(t, r.out) {
		if strings.HasSuffix(name, ".prov") || strings.HasSuffix(name, ".sig") {
			t.Errorf("%s is left of an earlier release", name)
		}
	}
}

// chartIsSigned verifies an archive, and that helm pull --prov gets the same provenance.
func chartIsSigned(t *testing.T, reference, archive string) {
	t.Helper()
	known, err := provenance.NewFromKeyring(keyring(t, "helm-test-key.pub"), "")
	if err == nil {
		_, err = known.Verify(archive, archive+".prov")
	}
	if err != nil {
		t.Errorf("%s: %v", archive, err)
	}
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(reference, helmregistry.PullOptWithProv(true))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(archive + ".prov"); err != nil || string(pulled.Prov.Data) != string(want) {
		t.Errorf("%s has another provenance: %s (%v)", reference, pulled.Prov.Data, err)
	}
}

// imageIsSigned looks for the signature of an image where cosign does, and verifies it.
func imageIsSigned(t *testing.T, reference string, key *ecdsa.PrivateKey) {
	t.Helper()
	there, err := remote.NewRepository(reference)
	if err != nil {
		t.Fatal(err)
	}
	there.PlainHTTP = true
	image, err := there.Resolve(t.Context(), there.Reference.Reference)
	if err != nil {
		t.Fatal(err)
	}
	found, err := there.Resolve(t.Context(), strings.Replace(image.Digest.String(), ":", "-", 1)+".sig")
	if err != nil {
		t.Fatal(err)
	}
	var manifest ocispec.Manifest
	text, err := content.FetchAll(t.Context(), there, found)
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("the signature of %s: %s (%v)", reference, text, err)
	}
	payload, err := content.FetchAll(t.Context(), there, manifest.Layers[0])
	if err != nil {
		t.Fatal(err)
	}
	verify(t, key, payload, manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	var says struct {
		Critical struct {
			Identity map[string]string `json:"identity"`
			Image    map[string]string `json:"image"`
			Type     string            `json:"type"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(payload, &says); err != nil || says.Critical.Image["docker-manifest-digest"] != image.Digest.String() ||
		says.Critical.Type != "cosign container image signature" || !strings.HasPrefix(reference, says.Critical.Identity["docker-reference"]+":") {
		t.Errorf("what is signed says %s (%v)", payload, err)
	}
}

func TestAKeyThatCannotSignIsNamed(t *testing.T) {
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ keyring, user, key, want string }{
		"a keyring without a user": {keyring: text, want: "belong together"},
		"a user without a keyring": {user: helmTests, want: "belong together"},
		"no keyring":               {keyring: text + "-not", user: helmTests, want: "no such file"},
		"somebody else":            {keyring: keyring(t, "helm-test-key.secret"), user: "nobody", want: "private key not found"},
		"a public key":             {keyring: keyring(t, "helm-test-key.pub"), user: helmTests, want: "not a private key"},
		"with a passphrase":        {keyring: keyring(t, "helm-password-key.secret"), user: "helm", want: "export it without one"},
		"no file":                  {key: text + "-not", want: "no such file"},
		"no PEM":                   {key: text, want: "PKCS #8"},
		"RSA":                      {key: keyFile(t, long), want: "ECDSA P-256"},
		"another curve":            {key: keyFile(t, newKey(t, elliptic.P384())), want: "ECDSA P-256"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readSigners(row.keyring, row.user, row.key); err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one sentence with %q", err, row.want)
			}
		})
	}
}
