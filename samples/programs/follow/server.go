// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// server has the AppWrappers of a namespace. A program with client-go does not need this file.
type server struct {
	http.Client
	url, token string
}

type access struct {
	Server, Token string
	CA            []byte `json:"certificate-authority-data"`
	Cert          []byte `json:"client-certificate-data"`
	Key           []byte `json:"client-key-data"`
}

func connect(kubeconfig, namespace string) *server {
	var config struct {
		Clusters []struct{ Cluster access }
		Users    []struct{ User access }
	}
	text, err := os.ReadFile(kubeconfig)
	must(errors.Join(err, json.Unmarshal(text, &config)))
	cluster, user := config.Clusters[0].Cluster, config.Users[0].User
	trust := &tls.Config{RootCAs: x509.NewCertPool()}
	trust.RootCAs.AppendCertsFromPEM(cluster.CA)
	if user.Cert != nil {
		pair, err := tls.X509KeyPair(user.Cert, user.Key)
		must(err)
		trust.Certificates = []tls.Certificate{pair}
	}
	client := http.Client{Timeout: 330 * time.Second, Transport: &http.Transport{TLSClientConfig: trust}}
	return &server{client, cluster.Server + "/apis/workload.codeflare.dev/v1beta2/namespaces/" + namespace + "/appwrappers", user.Token}
}

type appWrappers struct {
	Metadata struct{ ResourceVersion string }
	Items    []appWrapper
}

func (s *server) list() (list appWrappers, err error) {
	body, err := s.get("")
	if err != nil {
		return list, err
	}
	defer body.Close()
	err = json.NewDecoder(body).Decode(&list)
	return list, err
}

// watch returns when the server ends the watch, as it does after a while.
func (s *server) watch(version string, see func(aw appWrapper, gone bool)) error {
	body, err := s.get("?watch=1&timeoutSeconds=300&resourceVersion=" + version)
	if err != nil {
		return err
	}
	defer body.Close()
	for events := json.NewDecoder(body); ; {
		var event struct {
			Type   string
			Object appWrapper
		}
		if err := events.Decode(&event); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil || event.Type == "ERROR" {
			return cmp.Or(err, errors.New("the version is too old"))
		}
		see(event.Object, event.Type == "DELETED")
	}
}

func (s *server) get(query string) (io.ReadCloser, error) {
	request, err := http.NewRequest(http.MethodGet, s.url+query, nil)
	must(err)
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(response.Status), response.Body.Close())
	}
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
