// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeDebian provides packages with one program each and no dependencies. It returns the path of
// a file that gets a line for each unpacked package.
func fakeDebian(t *testing.T) (unpacked string) {
	t.Helper()
	dir := t.TempDir()
	unpacked = filepath.Join(dir, "unpacked")
	write(t, filepath.Join(dir, "apt-get"), `#!/bin/sh
for word; do
	case "$word" in
	Dir::Cache=*) archives=${word#*=}/archives;;
	nftables|runc) echo package > "$archives/${word}_1.deb";;
	esac
done
`)
	write(t, filepath.Join(dir, "dpkg-deb"), `#!/bin/sh
package=$(basename "$2" _1.deb)
mkdir -p "$3/usr/sbin"
echo "program of $package" > "$3/usr/sbin/$package"
echo $package >> `+unpacked+`
`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return unpacked
}

func TestRuncAndNftAreFetchedOnce(t *testing.T) {
	c, _ := newCluster(t)
	other, _ := newCluster(t)
	other.config.CacheDir = c.config.CacheDir
	unpacked := fakeDebian(t)
	var both sync.WaitGroup
	for _, cluster := range []*Cluster{c, other} {
		both.Go(func() {
			if _, err := cluster.hostTools(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	wantText(t, unpacked, "nftables\nrunc\n")
	for dir, want := range map[string][]string{
		c.config.CacheDir: {"host-tools-1", "host-tools-1.lock"},
		filepath.Join(c.config.CacheDir, "host-tools-1"): {"manifest.json", "usr"},
	} {
		if diff := cmp.Diff(want, namesIn(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
}

func TestABrokenRuncIsFetchedAgain(t *testing.T) {
	c, _ := newCluster(t)
	fakeDebian(t)
	dir, err := c.hostTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runc := filepath.Join(dir, "usr", "sbin", "runc")
	if err := os.Truncate(runc, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := c.hostTools(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantText(t, runc, "program of runc\n")
}

func TestAMachineWithoutDebianIsRefused(t *testing.T) {
	c, _ := newCluster(t)
	fakeDebian(t)
	write(t, filepath.Join(strings.SplitN(os.Getenv("PATH"), ":", 2)[0], "apt-get"), "#!/bin/sh\nexit 100\n")
	_, err := c.hostTools(t.Context())
	wantSentence(t, err, "cannot fetch runc and nft: cannot read Debian's package lists: apt-get: exit status 100")
	if diff := cmp.Diff([]string{"host-tools-1.lock"}, namesIn(t, c.config.CacheDir)); diff != "" {
		t.Errorf("it leaves files (-want +got):\n%s", diff)
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is %q, want %q (%v)", path, got, want, err)
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
