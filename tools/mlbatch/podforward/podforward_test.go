// SPDX-License-Identifier: Apache-2.0

package podforward_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podforward"
)

var pod = corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "train-master-0"}}

// kubelet greets whoever connects to a port of the pod. Like the role of members, it allows POST only, so WebSockets
// are refused.
func kubelet(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/blue/pods/train-master-0/portforward" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, answered <-chan struct{}) error {
			go func() {
				<-answered
				if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
					_, _ = io.WriteString(stream, "port "+stream.Headers().Get(corev1.PortHeader))
				}
				_ = stream.Close()
			}()
			return nil
		})
		if connection != nil {
			<-connection.CloseChan()
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// lines are what was printed until now.
type lines struct {
	mutex sync.Mutex
	text  string
}

func (l *lines) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.text += string(text)
	return len(text), nil
}

func (l *lines) port() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if found := regexp.MustCompile(`127\.0\.0\.1:([0-9]+) -> 8888`).FindStringSubmatch(l.text); found != nil {
		return found[1]
	}
	return ""
}

func TestConnectionsReachThePod(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, ended := &lines{}, make(chan error, 1)
	config := kubelet(t)
	go func() {
		ended <- podforward.Run(ctx, config, pod, podforward.Listener{Addresses: []string{"127.0.0.1"}, Ports: []string{":8888"}, Out: out, Err: out})
	}()
	for deadline := time.Now().Add(time.Minute); out.port() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nothing listens: %s", out.text)
		}
	}
	connection, err := net.Dial("tcp", "127.0.0.1:"+out.port())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(connection); err != nil || string(got) != "port 8888" {
		t.Errorf("got %q, %v", got, err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("an interruption is an error: %v", err)
	}
}

func TestWhatCannotBeForwardedIsASentence(t *testing.T) {
	config := kubelet(t)
	for want, row := range map[string]struct {
		pod   corev1.Pod
		ports []string
	}{
		"cannot read the ports: ":                     {pod, []string{"http"}},
		"cannot forward ports of pod other: ":         {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "other"}}, []string{":8888"}},
		": write LOCAL:REMOTE, such as 8888:8888, or": {pod, []string{"1:2:3"}},
	} {
		err := podforward.Run(t.Context(), config, row.pod, podforward.Listener{Addresses: []string{"127.0.0.1"}, Ports: row.ports, Out: io.Discard, Err: io.Discard})
		wording.OneSentence(t, "", err, want)
	}
}
