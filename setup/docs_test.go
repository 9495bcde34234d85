// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/test/golden"
	"github.com/mlbatch/mlbatch/tools/mlbatch/parts"
)

// TestTheVersionsPageIsTrue holds docs/versions.md to versions.yaml.
func TestTheVersionsPageIsTrue(t *testing.T) {
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
	line("This page is made from `setup/versions.yaml` (`go test ./setup -update`).")
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
	line("Gangs are scheduled by the scheduler called `%s`.", v.SchedulerName)
	line("The charts are installed and upgraded with Helm %s and Helm %s ([how](testing.md#two-helms)).", v.Helm.Three, v.Helm.Four)
	line("")
	line("## What a local cluster is made of")
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
	line("")
	line("runc and nft are those of Debian.")
	return page.String()
}

// readable turns a range as Helm writes it into words.
func readable(constraint string) string {
	return strings.NewReplacer("-0", "", ">=", "from ", "<", "to before ").Replace(constraint)
}

// TestEveryProfileIsInTheTable holds the table of docs/install.md to the folder.
func TestEveryProfileIsInTheTable(t *testing.T) {
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
