// SPDX-License-Identifier: Apache-2.0

//go:build browser

// Package browser looks at the documentation site in Chromium, as readers do: on a desk and on a phone, in light and
// in dark, from a server and from a disk. Chromium has no display and reaches no network.
package browser

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/mlbatch/mlbatch/tools/artifacts/site/website"
)

// The site that is looked at, and the browser.
var (
	folder  string // the site on a disk
	server  *httptest.Server
	browser context.Context
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return 1, fmt.Errorf("cannot find chromium: install Debian's package chromium, or run 'make site-test' as root: %w", err)
	}
	if folder, err = os.MkdirTemp("", "mlbatch-site-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	if err := writeSite(); err != nil {
		return 1, err
	}
	server = httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which Chromium demands of root
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		return 1, fmt.Errorf("cannot start %s: %w", program, err)
	}
	return m.Run(), nil
}

func writeSite() error {
	written, err := website.Written(os.DirFS("../../../../bin/pages")) // by make site-test
	if err != nil {
		return err
	}
	files, err := website.Build(os.DirFS("../../../.."), written)
	if err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pageFiles are the names of all pages of the site.
func pageFiles(t *testing.T) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".html") {
			all = append(all, name)
		}
		return err
	})
	if err != nil || len(all) < 50 {
		t.Fatalf("the site has %d pages: %v", len(all), err)
	}
	return all
}

// patience is how long something may take that takes a moment.
const patience = 30 * time.Second

// tab is a tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // what the console says
}

// open opens a tab with a size and with colours that the system prefers: light or dark. It remembers nothing of others.
func open(t *testing.T, width, height int64, colours string) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	size := chromedp.EmulateViewport(width, height)
	if width < 600 {
		size = chromedp.EmulateViewport(width, height, chromedp.EmulateMobile)
	}
	b.do(size)
	b.prefer(colours)
	return b
}

// prefer makes it the system's choice: light or dark.
func (b *tab) prefer(colours string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: colours}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s", e.Entry.Text, e.Entry.URL))
	}
}

// said returns what the console has said since it was asked.
func (b *tab) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.complaints
	b.complaints = nil
	return said
}

// do does some steps, one after the other.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// press presses a key without the text that usually comes with it: a page may refuse the text.
func (b *tab) press(key string) {
	b.t.Helper()
	call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: key})
}

// visit opens a page of the server.
func (b *tab) visit(page string) {
	b.t.Helper()
	b.do(chromedp.Navigate(server.URL + "/" + page))
}

// eval returns the value of an expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits until an expression is true, also on the next page.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)) // fails while the page changes
		if is {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("%s did not become true: %v", expression, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

//go:embed look.js
var look string

// seen is what there is to see of a page.
type seen struct {
	Links []string `json:"links"`
	IDs   []string `json:"ids"`
	// Wider are the elements that are wider than the screen, if the page scrolls sideways.
	Wider []string `json:"wider"`
	// Faint are texts with less contrast than 4.5.
	Faint []string `json:"faint"`
	// Texts counts the texts whose contrast was computed.
	Texts int `json:"texts"`
}

func (b *tab) see() seen {
	b.t.Helper()
	return eval[seen](b, look)
}
