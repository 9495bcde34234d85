// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/web"
)

// website has the flags of mlbatch web.
type website struct {
	where     runNamespace
	port      uint16
	noBrowser bool
}

func webCommand() *cobra.Command {
	var s website
	cmd := &cobra.Command{
		Use:     "web",
		Example: "  mlbatch web\n  mlbatch web --port 8080 --no-browser",
		Short:   "Show what list, top, why, usage, check and audit say in a browser",
		Long: "Serve a page on this machine that shows what list, top, why, status, usage, check and audit print, with your own\n" +
			"rights, and changes while you look. It changes nothing but what you confirm there, and no one else can open it: the\n" +
			"address that it prints lets in one browser, once. It ends when you interrupt it (docs/web.md).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	flags := cmd.Flags()
	s.where.bind(flags, ofTheWork)
	flags.Uint16Var(&s.port, "port", 0, "port on 127.0.0.1 (default: a free one)")
	flags.BoolVar(&s.noBrowser, "no-browser", false, "only print the address, and open no browser")
	return cmd
}

func (s website) run(cmd *cobra.Command) error {
	source, err := s.source(cmd)
	if err != nil {
		return err
	}
	log.SetLogger(logr.Discard()) // a stack is printed after some time if nobody has chosen a logger
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(s.port))))
	if err != nil {
		return fmt.Errorf("cannot listen on port %d: choose another one with --port: %w", s.port, err)
	}
	server := web.New(cmd.Context(), source, web.Usual())
	address := "http://" + listener.Addr().String() + server.Entrance()
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", address)
	fmt.Fprintln(cmd.ErrOrStderr(), "open this address, which works once; interrupt mlbatch (Ctrl-C) to end the page")
	if file, isFile := cmd.OutOrStdout().(*os.File); isFile && !s.noBrowser && term.IsTerminal(int(file.Fd())) {
		forget := show(cmd.Context(), address)
		defer forget()
	}
	return server.Serve(cmd.Context(), listener)
}

// source is the cluster as the user sees it.
func (s website) source(cmd *cobra.Command) (web.Source, error) {
	config, namespace, err := s.config(cmd)
	if err != nil {
		return web.Source{}, err
	}
	scheme, err := runs.Scheme()
	if err != nil {
		return web.Source{}, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return web.Source{}, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	user := &http.Client{Transport: &login{transport: transport, load: func() (*rest.Config, error) {
		config, _, err := s.config(cmd)
		return config, err
	}}}
	c, err := client.NewWithWatch(config, client.Options{HTTPClient: user, Scheme: scheme, Mapper: web.Mapper()})
	if err != nil {
		return web.Source{}, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	everything := func() (client.Client, error) {
		return client.New(config, client.Options{HTTPClient: user, Scheme: scheme})
	}
	return web.Source{Client: c, Everything: everything, Cluster: s.cluster(config), Namespace: cmp.Or(s.where.name, namespace)}, nil
}

// config is how to connect to the cluster as the user, or whom the user impersonates.
func (s website) config(cmd *cobra.Command) (*rest.Config, string, error) {
	config, namespace, err := configOf(cmd, s.where.cluster)
	if err != nil {
		return nil, "", err
	}
	config.QPS, config.Burst = 50, 100 // a page reads several lists at once
	return config, namespace, nil
}

// cluster is a name for people: the context, or else the address.
func (s website) cluster(config *rest.Config) string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.where.cluster.Kubeconfig
	current := ""
	if loaded, err := rules.Load(); err == nil {
		current = loaded.CurrentContext
	}
	return cmp.Or(s.where.cluster.Context, current, config.Host)
}

// show opens the address in the browser of the user. Every user of the machine can read the arguments of programs, so
// the address is in a file, which the returned function removes. Without a browser, the user has read the address.
func show(ctx context.Context, address string) (forget func()) {
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY")+os.Getenv("WAYLAND_DISPLAY") == "" {
		return func() {}
	}
	file, err := writeAddress(address)
	if err != nil {
		return func() {}
	}
	browser := exec.CommandContext(ctx, opener[0], append(opener[1:], file)...)
	if browser.Start() == nil {
		go func() { _ = browser.Wait() }() // it says itself what is wrong
	}
	return func() { _ = os.RemoveAll(filepath.Dir(file)) }
}

// writeAddress writes a page that only the user can read, and that leads to the address.
func writeAddress(address string) (file string, err error) {
	folder, err := os.MkdirTemp("", "mlbatch-web-")
	if err != nil {
		return "", err
	}
	file = filepath.Join(folder, "open.html")
	text := `<!doctype html><html lang="en"><title>mlbatch</title><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=` +
		html.EscapeString(address) + `"></html>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	return file, nil
}
