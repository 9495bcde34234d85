// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/archive"
)

// gitImage has test/gitserver, and git of this machine.
const gitImage = "images.local/mlbatch/git:1"

// A program runs that is in the Application, and one that is in a repository with a password.
func TestARunBringsItsCode(t *testing.T) {
	testenv.Test(t, features.New("code").Assess("code comes from where the Application says", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-runs", "ruth", needs.Machine, needs.TrainingPods, needs.Runs)
		written := s.program("written", "bash hello.sh && touch mine && ls")
		written.Spec.Code = []v1alpha1.CodeFile{{Name: "hello.sh", Source: "echo \"I am $(id -u) and say $(cat words)\"\n"}, {Name: "words", Source: "$(x) \"ü\""}}
		user := int64(1234)
		written.Spec.SecurityContext = &v1alpha1.SecurityContext{RunAsUser: &user}
		s.create(ctx, written)
		s.wantLog(ctx, "written", `I am 1234 and say $(x) "ü"`, "hello.sh\nmine\nwords\n")

		url := s.serveGit(ctx)
		fetched := s.program("fetched", "bash hello.sh; ls /codeflare 2>&1 || true")
		fetched.Spec.Repo, fetched.Spec.RepoSecret = url+"/org/repo/tree/feature/x/src", &v1alpha1.SecretReference{Name: "git"}
		s.create(ctx, fetched)
		run := s.wantLog(ctx, "fetched", "the repository says hello\nhello.sh\n", "cannot access '/codeflare'")
		if !regexp.MustCompile("^[0-9a-f]{40}$").MatchString(run.Status.Commit) {
			t.Errorf("its commit is %q", run.Status.Commit)
		}

		closed := s.program("closed", "true")
		closed.Spec.Repo, closed.Spec.RepoSecret = fetched.Spec.Repo, &v1alpha1.SecretReference{Name: "wrong"}
		s.create(ctx, closed)
		last := execution("closed", "closed", "100m")
		last.Annotations = map[string]string{workload.RetryLimitAnnotation: "0"}
		s.create(ctx, last)
		s.untilRun(ctx, last, v1alpha1.RunFailed)
		if f := last.Status.LastFailure; f == nil || f.Container != "code" || !strings.Contains(f.Message, "refuses the user and the password") {
			t.Errorf("its last failure is %+v", f)
		}
		return ctx
	}).Feature())
}

// wantLog runs an Application once, and wants words in its log.
func (s *story) wantLog(ctx context.Context, application string, words ...string) *v1alpha1.Run {
	s.t.Helper()
	run := execution(application, application, "100m")
	s.create(ctx, run)
	s.untilRun(ctx, run, v1alpha1.RunSucceeded)
	pods := &corev1.PodList{}
	if err := s.admin.List(ctx, pods, func(o *metav1.ListOptions) { o.LabelSelector = v1alpha1.RunLabel + "=" + application }); err != nil || len(pods.Items) != 1 {
		s.t.Fatalf("it has %d pods: %v", len(pods.Items), err)
	}
	log, err := s.api.CoreV1().Pods(s.namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, want := range words {
		if !strings.Contains(string(log), want) {
			s.t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	return run
}

// serveGit starts a server with a password and a certificate that only its Secret knows, and returns
// its URL.
func (s *story) serveGit(ctx context.Context) string {
	s.t.Helper()
	if err := site.Cluster.LoadImages(ctx, buildGit(ctx, s.t)); err != nil {
		s.t.Fatal(err)
	}
	host := "git." + s.namespace + ".svc"
	certificate, key := certificateOf(s.t, host)
	who := map[string]string{"user": "ruth", "pat": "open sesame"}
	s.create(ctx, secretOf("git-server", who, map[string]string{"tls.crt": certificate, "tls.key": key}))
	s.create(ctx, secretOf("git", who, map[string]string{"ca.crt": certificate}))
	s.create(ctx, secretOf("wrong", who, map[string]string{"ca.crt": certificate, "pat": "sesame"}))
	s.create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "git"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "git"}, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}},
	}})
	server := job("git", "100m", "/secret")
	server.Spec.Template.Labels = map[string]string{"app": "git"}
	pod := &server.Spec.Template.Spec
	pod.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "git-server"}}}}
	c := &pod.Containers[0]
	c.Image, c.VolumeMounts = gitImage, []corev1.VolumeMount{{Name: "secret", MountPath: "/secret"}}
	c.Resources.Requests = requests("100m", "128Mi", "")
	c.Resources.Limits = c.Resources.Requests
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)}}}
	aw := wrapped("git", server, nil)
	s.create(ctx, aw)
	s.untilReady(ctx, aw)
	return "https://" + host
}

func secretOf(name string, data ...map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{}}
	for _, some := range data {
		for key, value := range some {
			secret.StringData[key] = value
		}
	}
	return secret
}

// certificateOf is one that signs itself.
func certificateOf(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// buildGit writes the archive of gitImage, with the libraries that git of this machine needs.
func buildGit(ctx context.Context, t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program := compiler.Program{Dir: site.Checkout, Packages: []string{"./test/gitserver"}}
	if err := program.Compile(ctx, filepath.Join(dir, "gitserver")); err != nil {
		t.Fatal(err)
	}
	backend, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		t.Fatalf("install git: %v", err)
	}
	programs := []string{"/usr/bin/git", strings.TrimSpace(string(backend)) + "/git-http-backend"}
	libraries, err := exec.CommandContext(ctx, "ldd", programs...).Output()
	if err != nil {
		t.Fatalf("cannot find the libraries of git: %v", err)
	}
	found := map[string]bool{}
	var files []archive.File
	for _, path := range append(programs, regexp.MustCompile(`/lib\S+\.so\S*`).FindAllString(string(libraries), -1)...) {
		if !found[path] {
			files = append(files, archive.File{Path: path, Mode: 0o755, Source: path})
		}
		found[path] = true
	}
	path := filepath.Join(dir, "git.tar")
	image := archive.Image{
		Reference: gitImage, Entrypoint: []string{"/gitserver"}, Env: []string{"PATH=/usr/bin"},
		Platforms: []archive.Platform{archive.Program(runtime.GOARCH, filepath.Join(dir, "gitserver"), "/gitserver", files...)},
	}
	if err := archive.Write(path, image); err != nil {
		t.Fatal(err)
	}
	return path
}
