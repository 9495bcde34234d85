// SPDX-License-Identifier: Apache-2.0

// Follow prints its conclusion about each AppWrapper of a namespace whenever it changes. See docs/programs.md.
package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

type counts struct{ FailureRetries, StartupRetries, Migrations, Preemptions int }

type appWrapper struct {
	Metadata struct{ Name, UID, ResourceVersion, DeletionTimestamp string }
	Status   struct {
		counts
		Phase        string
		Conditions   []struct{ Type, Status, Reason string }
		LastAttempts []struct{ Cause string }
	}
}

// A conclusion that has Ended is never taken back.
type conclusion struct {
	UID, Name, AsOf, Is, Because string
	Ended                        bool
	counts
}

var ofPhases = map[string]string{"": "Waits", "Suspended": "Waits", "Resuming": "Starts", "Running": "Starts", "Resetting": "TriesAgain"}

// because returns the reasons of the conditions that are True, and why the last attempt ended.
func because(aw appWrapper) (reasons map[string]string, cause string) {
	reasons = map[string]string{}
	for _, c := range aw.Status.Conditions {
		if c.Status == "True" {
			reasons[c.Type] = c.Reason
		}
	}
	for _, a := range aw.Status.LastAttempts {
		cause = a.Cause
	}
	return reasons, cause
}

func conclude(aw appWrapper, gone bool) conclusion {
	s := aw.Status
	reasons, cause := because(aw)
	is, why, ended := cmp.Or(ofPhases[s.Phase], "Unknown"), "", false
	switch {
	case reasons["Finished"] == "Failed":
		is, why, ended = "Failed", cause, true
	case reasons["Finished"] != "":
		is, ended = reasons["Finished"], true
	case gone:
		is, ended = "Deleted", true
	case aw.Metadata.DeletionTimestamp != "":
		is = "BeingDeleted"
	case reasons["Deactivated"] != "":
		is, why = "Deactivated", reasons["Deactivated"]
	case reasons["Requeued"] != "":
		is, why = "WaitsAgain", reasons["Requeued"]
	case s.Phase == "Running" && reasons["PodsReady"] != "":
		is = "Runs"
	case is == "TriesAgain":
		why = cause
	}
	return conclusion{aw.Metadata.UID, aw.Metadata.Name, aw.Metadata.ResourceVersion, is, why, ended, s.counts}
}

type follower struct {
	url, token, file string
	client           http.Client
	known            map[string]conclusion // by UID. The file keeps it for the time after a restart
}

func (f *follower) see(aw appWrapper, gone bool) {
	now, was := conclude(aw, gone), f.known[aw.Metadata.UID]
	was.AsOf = now.AsOf
	if !was.Ended && now != was {
		line, _ := json.Marshal(now)
		fmt.Println(string(line)) // a program acts here; after a crash it may do so twice
		f.known[now.UID] = now
	}
	if gone {
		delete(f.known, aw.Metadata.UID)
	}
	text, _ := json.Marshal(f.known)
	must(os.WriteFile(f.file+".new", text, 0o600))
	must(os.Rename(f.file+".new", f.file))
}

// follow lists, and watches until something is wrong: then it has to list again.
func (f *follower) follow() error {
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []appWrapper
	}
	body, err := f.get("")
	if err != nil {
		return err
	}
	if err := errors.Join(json.NewDecoder(body).Decode(&list), body.Close()); err != nil {
		return err
	}
	there := map[string]bool{}
	for _, aw := range list.Items {
		there[aw.Metadata.UID] = true
		f.see(aw, false)
	}
	for uid, c := range f.known {
		if !there[uid] { // it went while nobody watched
			var aw appWrapper
			aw.Metadata.UID, aw.Metadata.Name, aw.Metadata.ResourceVersion, aw.Status.counts = uid, c.Name, list.Metadata.ResourceVersion, c.counts
			f.see(aw, true)
		}
	}
	for version := list.Metadata.ResourceVersion; err == nil; {
		version, err = f.watch(version)
	}
	return err
}

func (f *follower) watch(version string) (string, error) {
	body, err := f.get("?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=" + version)
	if err != nil {
		return "", err
	}
	defer body.Close()
	for events := json.NewDecoder(body); ; {
		var event struct {
			Type   string
			Object appWrapper
		}
		if err := events.Decode(&event); errors.Is(err, io.EOF) {
			return version, nil // the server ends each watch after a while
		} else if err != nil || event.Type == "ERROR" {
			return "", cmp.Or(err, errors.New("the version is too old"))
		}
		if version = event.Object.Metadata.ResourceVersion; event.Type != "BOOKMARK" {
			f.see(event.Object, event.Type == "DELETED")
		}
	}
}

func (f *follower) get(query string) (io.ReadCloser, error) {
	request, err := http.NewRequest(http.MethodGet, f.url+query, nil)
	must(err)
	if f.token != "" {
		request.Header.Set("Authorization", "Bearer "+f.token)
	}
	response, err := f.client.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(response.Status), response.Body.Close())
	}
	if err != nil {
		time.Sleep(time.Second)
		return nil, err
	}
	return response.Body, nil
}

type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server string
			CA     []byte `json:"certificate-authority-data"`
		}
	}
	Users []struct {
		User struct {
			Token string
			Cert  []byte `json:"client-certificate-data"`
			Key   []byte `json:"client-key-data"`
		}
	}
}

// The arguments: what kubectl config view --minify --flatten --raw --output json printed, a namespace, and a file to
// remember conclusions in.
func main() {
	var config kubeconfig
	text, err := os.ReadFile(os.Args[1])
	must(err)
	must(json.Unmarshal(text, &config))
	cluster, user := config.Clusters[0].Cluster, config.Users[0].User
	trust := &tls.Config{RootCAs: x509.NewCertPool()}
	trust.RootCAs.AppendCertsFromPEM(cluster.CA)
	if len(user.Cert) > 0 {
		pair, err := tls.X509KeyPair(user.Cert, user.Key)
		must(err)
		trust.Certificates = []tls.Certificate{pair}
	}
	f := follower{token: user.Token, file: os.Args[3], known: map[string]conclusion{}}
	f.url = cluster.Server + "/apis/workload.codeflare.dev/v1beta2/namespaces/" + os.Args[2] + "/appwrappers"
	f.client = http.Client{Timeout: 330 * time.Second, Transport: &http.Transport{TLSClientConfig: trust}}
	if text, err := os.ReadFile(f.file); err == nil {
		must(json.Unmarshal(text, &f.known))
	}
	for {
		fmt.Fprintln(os.Stderr, "listing again, because", f.follow())
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
