// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestDefaultsComeFromTheEnvironment(t *testing.T) {
	defaults := Config{Name: "mlbatch", Port: 26443, SimulatedNodes: 10}
	for name, c := range map[string]struct {
		env         map[string]string
		given, want Config
	}{
		"folders lie in HOME": {
			env:  map[string]string{"HOME": "/home/alice"},
			want: Config{CacheDir: "/home/alice/.cache/mlbatch", StateDir: "/home/alice/.local/state/mlbatch/clusters"},
		},
		"XDG folders come before HOME": {
			env:  map[string]string{"HOME": "/home/alice", "XDG_CACHE_HOME": "/big/cache", "XDG_STATE_HOME": "/big/state"},
			want: Config{CacheDir: "/big/cache/mlbatch", StateDir: "/big/state/mlbatch/clusters"},
		},
		"what is given stays, with no HOME at all": {
			given: Config{Name: "e2e", Port: 1, SimulatedNodes: -1, CacheDir: "/c", StateDir: "/s"},
			want:  Config{Name: "e2e", Port: 1, SimulatedNodes: -1, CacheDir: "/c", StateDir: "/s"},
		},
		"a mode is only what was asked for": {
			given: Config{Name: "e2e", Mode: Simulated, Port: 1, SimulatedNodes: -1, CacheDir: "/c", StateDir: "/s"},
			want:  Config{Name: "e2e", Mode: Simulated, Port: 1, SimulatedNodes: -1, CacheDir: "/c", StateDir: "/s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, c.env)
			if c.want.Name == "" {
				c.want.Name, c.want.Port, c.want.SimulatedNodes = defaults.Name, defaults.Port, defaults.SimulatedNodes
			}
			c.want.Mode, c.want.PlatformNodes = cmp.Or(c.want.Mode, Real), 1
			got, err := c.given.completed()
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMissingFolderNamesTheVariable(t *testing.T) {
	environment(t, nil)
	_, err := Config{}.completed()
	wantSentence(t, err, "cannot find a folder for the cluster's state (set HOME or XDG_STATE_HOME)")
	environment(t, map[string]string{"HOME": "/home/alice", "XDG_STATE_HOME": "state"})
	_, err = Config{}.completed()
	wantSentence(t, err, "XDG_STATE_HOME is \"state\"; set it to an absolute path")
	environment(t, map[string]string{"HOME": "/home/alice", "XDG_CACHE_HOME": "cache"})
	_, err = Config{}.completed()
	wantSentence(t, err, "cannot find a cache folder", "XDG_CACHE_HOME is relative")
	environment(t, map[string]string{"XDG_STATE_HOME": "/s"})
	_, err = New(Config{}, nil)
	wantSentence(t, err, "cannot find a cache folder (set HOME or XDG_CACHE_HOME)")
	_, err = Leaks(Config{})
	wantSentence(t, err, "set HOME or XDG_CACHE_HOME")
}

func TestAnUnknownModeIsRefused(t *testing.T) {
	environment(t, map[string]string{"HOME": "/home/alice"})
	_, err := Config{Mode: "fake"}.completed()
	wantSentence(t, err, `unknown mode "fake"; choose real or simulated`)
}

func TestAnUnknownKubernetesIsRefused(t *testing.T) {
	t.Setenv("MLBATCH_KUBERNETES", "1.29")
	_, err := Config{}.completed()
	wantSentence(t, err, "a local cluster runs no Kubernetes 1.29: choose one of 1.30, 1.37, 1.34")
}

func TestTheUsualKubernetesIsNoOther(t *testing.T) {
	for asked, want := range map[string]string{"1.30": "1.30", "1.34": "", "": ""} {
		got, err := Config{Kubernetes: asked}.completed()
		if err != nil || got.Kubernetes != want {
			t.Errorf("%q becomes %q, %v, want %q", asked, got.Kubernetes, err, want)
		}
	}
}

func TestClusterNames(t *testing.T) {
	environment(t, map[string]string{"HOME": "/home/alice"})
	for name, good := range map[string]bool{
		"mlbatch": true, "a": true, "e2e-2": true, "a2345678901234567890": true,
		"gpu-large": true, "gpu-": false,
		"a23456789012345678901": false, "2e": false, "-a": false, "a-": false, "A": false, "a_b": false, "a.b": false, "../a": false,
	} {
		_, err := Config{Name: name}.completed()
		if good && err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
		if !good {
			wantSentence(t, err, "must be up to 20 lower-case letters, digits and dashes")
		}
	}
}

// The real node and a simulated one would be the same object in the API server.
func TestANameOfASimulatedNodeIsRefused(t *testing.T) {
	environment(t, map[string]string{"HOME": "/home/alice"})
	_, err := New(Config{Name: "gpu-0"}, nil)
	wantSentence(t, err, `cluster name "gpu-0" is reserved for a simulated node`, "--name")
}

func TestFindCheckout(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "setup", "versions.yaml"), "")
	sub := filepath.Join(root, "docs", "decisions")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{root, sub} {
		if got, err := FindCheckout(from); err != nil || got != root {
			t.Errorf("from %s: %q, %v", from, got, err)
		}
	}
	t.Chdir(sub)
	if got, err := FindCheckout("."); err != nil || got != root {
		t.Errorf("from the working directory: %q, %v", got, err)
	}
	outside := t.TempDir()
	_, err := FindCheckout(outside)
	wantSentence(t, err, outside+" is not inside a checkout of MLBatch", "--checkout")
}

// environment sets the variables that determine the default folders.
func environment(t *testing.T, set map[string]string) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, set[name])
	}
}
