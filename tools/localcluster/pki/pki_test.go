// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCertificatesAreValidOnlyForTheirPurpose(t *testing.T) {
	dir := t.TempDir()
	ca, err := NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority(dir, "other-ca")
	if err != nil {
		t.Fatal(err)
	}
	issue(t, ca, Leaf{File: "server", CommonName: "kube-apiserver", Hosts: []string{"kubernetes.default.svc", "10.96.0.1"}})
	issue(t, ca, Leaf{File: "client", CommonName: "admin", Organization: "system:masters"})
	issue(t, other, Leaf{File: "stranger", CommonName: "admin"})
	server, client := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for name, c := range map[string]struct {
		file, host string
		usages     []x509.ExtKeyUsage
		good       bool
	}{
		"a server is good for its name":              {"server", "kubernetes.default.svc", server, true},
		"a server is good for its address":           {"server", "10.96.0.1", server, true},
		"a server is not good for another name":      {"server", "example.org", server, false},
		"a server is no client":                      {"server", "", client, false},
		"a client is good":                           {"client", "", client, true},
		"a client is no server":                      {"client", "", server, false},
		"a client of another authority is not known": {"stranger", "", client, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := certificate(t, dir, c.file).Verify(x509.VerifyOptions{
				Roots: pool(t, dir, "ca"), DNSName: c.host, KeyUsages: c.usages, CurrentTime: time.Now().Add(9 * 365 * 24 * time.Hour),
			})
			if (err == nil) != c.good {
				t.Errorf("nine years from now: %v", err)
			}
		})
	}
	subject := certificate(t, dir, "client").Subject
	if diff := cmp.Diff([]string{"admin", "system:masters"}, append([]string{subject.CommonName}, subject.Organization...)); diff != "" {
		t.Error(diff)
	}
}

func TestKeysBelongToTheirCertificatesAndToTheUserOnly(t *testing.T) {
	dir := t.TempDir()
	ca, err := NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	issue(t, ca, Leaf{File: "client", CommonName: "admin"})
	if err := ServiceAccountKeys(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca", "client"} {
		if _, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")); err != nil {
			t.Error(err)
		}
	}
	keys, _ := filepath.Glob(filepath.Join(dir, "*.key"))
	if len(keys) != 3 {
		t.Errorf("%d keys, want ca, client and sa", len(keys))
	}
	for _, key := range keys {
		info, err := os.Stat(key)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", key, info.Mode())
		}
	}
}

func TestServiceAccountKeysAreAPair(t *testing.T) {
	dir := t.TempDir()
	if err := ServiceAccountKeys(dir); err != nil {
		t.Fatal(err)
	}
	private, err := x509.ParsePKCS1PrivateKey(der(t, filepath.Join(dir, "sa.key")))
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.ParsePKIXPublicKey(der(t, filepath.Join(dir, "sa.pub")))
	if err != nil {
		t.Fatal(err)
	}
	token := sha256.Sum256([]byte("token"))
	signature, err := rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, token[:])
	if err != nil {
		t.Fatal(err)
	}
	if err := rsa.VerifyPKCS1v15(public.(*rsa.PublicKey), crypto.SHA256, token[:], signature); err != nil {
		t.Errorf("what one key signs, the other does not know: %v", err)
	}
}

func TestAMissingFolderIsNamed(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if _, err := NewAuthority(gone, "ca"); err == nil || !strings.Contains(err.Error(), gone) {
		t.Errorf("got %v", err)
	}
}

func issue(t *testing.T, a *Authority, leaf Leaf) {
	t.Helper()
	if err := a.Issue(leaf); err != nil {
		t.Fatal(err)
	}
}

func certificate(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(der(t, filepath.Join(dir, name+".crt")))
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func pool(t *testing.T, dir, name string) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, dir, name))
	return roots
}

func der(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("%s holds no PEM block", path)
	}
	return block.Bytes
}
