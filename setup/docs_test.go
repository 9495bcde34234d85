// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// TestVersionsPageIsUpToDate compares docs/versions.md with versions.yaml.
func TestVersionsPageIsUpToDate(t *testing.T) {
	v, err := setup.Load()
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../docs/versions.md", []byte(versionsPage(v)))
}

func versionsPage(v setup.Versions) string {
	var page strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) }
	line("# Versions")
	line("")
	line("MLBatch %s supports Kubernetes %s and Kueue %s.", v.Version, readable(v.Supported.Kubernetes), readable(v.Supported.Kueue))
	line("This page is generated from `setup/versions.yaml` (`go test ./setup -update`).")
	line("Releases will go to `%s` and `%s`; nothing is published yet.", v.ChartRepository, v.ImageRepository)
	line("")
	line("## What the platform installs")
	line("")
	line("| part | version | image | module |")
	line("|---|---|---|---|")
	for _, p := range parts.All {
		o, title := p.Operator(v), p.Title
		if p.Optional {
			title += ", off by default"
		}
		for _, i := range p.Images {
			switch {
			case i.Title == "":
				line("| %s | %s | `%s` | `%s` |", title, o.Version, p.Reference(i, v), o.Module)
			case i.Package == "":
				line("| %s | | `%s` | |", i.Title, p.Reference(i, v))
			default:
				line("| %s | %s | `%s` | `%s` |", i.Title, o.Version, p.Reference(i, v), o.Module)
			}
		}
	}
	line("")
	line("The scheduler `%s` schedules gangs.", v.SchedulerName)
	var others []string
	for kubernetes, tag := range v.Platform["coscheduler"].OtherKubernetes {
		others = append(others, kubernetes+": "+tag)
	}
	slices.Sort(others)
	line("It must not be newer than the API server. So the tag of its images depends on the version of Kubernetes:")
	line("%s.", strings.Join(others, ", "))
	line("The charts are tested with Helm %s and Helm %s ([how](testing.md#helm-3-and-helm-4)).", v.Helm.Three, v.Helm.Four)
	line("")
	line("## Programs of a local cluster")
	line("")
	line("| program | version |")
	line("|---|---|")
	l := v.LocalCluster
	for _, program := range [][2]string{
		{"Kubernetes", l.Kubernetes}, {"etcd", l.Etcd}, {"containerd", l.Containerd},
		{"CNI plugins", l.CNI}, {"CoreDNS", l.CoreDNS}, {"KWOK", l.KWOK},
	} {
		line("| %s | %s |", program[0], program[1])
	}
	for _, minor := range slices.Sorted(maps.Keys(l.OtherKubernetes)) {
		other := l.OtherKubernetes[minor]
		line("| Kubernetes, with `--kubernetes=%s` | %s |", minor, other.Kubernetes)
	}
	line("")
	line("runc and nft come from Debian ([why](decisions/0001-runc-and-nft-from-debian.md)).")
	return page.String()
}

// readable converts a range in Helm's format into words.
func readable(constraint string) string {
	return strings.NewReplacer("-0", "", ">=", "from ", "<", "to before ").Replace(constraint)
}

// TestEveryProfileIsDocumented compares the table of docs/install.md with profiles/.
func TestEveryProfileIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("profiles/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if row := "| `" + filepath.Base(file) + "` |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/install.md has no row that begins with %s", row)
		}
	}
}
