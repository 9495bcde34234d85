// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

func TestChangedProgramsAreListed(t *testing.T) {
	etcd := plan.Program{Name: "etcd", Version: "v3.6.15", Path: "/cache/etcd-1/server", Args: []string{"--a"}}
	for name, c := range map[string]struct {
		change func(*plan.Program)
		want   []string
	}{
		"nothing changes":      {func(*plan.Program) {}, nil},
		"a version":            {func(p *plan.Program) { p.Version, p.Path = "v3.6.16", "/cache/etcd-2/server" }, []string{"etcd v3.6.15 → v3.6.16"}},
		"a build":              {func(p *plan.Program) { p.Path = "/cache/etcd-2/server" }, []string{"etcd v3.6.15 is another build"}},
		"a flag":               {func(p *plan.Program) { p.Args = []string{"--b"} }, []string{"etcd has other settings"}},
		"a file that it reads": {func(p *plan.Program) { p.Files = "abc" }, []string{"etcd has other settings"}},
		"one for another":      {func(p *plan.Program) { p.Name = "kine" }, []string{"kine is new", "etcd is no longer needed"}},
	} {
		t.Run(name, func(t *testing.T) {
			next := etcd
			c.change(&next)
			if diff := cmp.Diff(c.want, differences([]plan.Program{etcd}, []plan.Program{next})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheKeeperIsSignalledANewPlanOnce(t *testing.T) {
	runs := plan.Plan{Revision: 2, Programs: []plan.Program{{Name: "etcd", Path: "/1"}}}
	another := plan.Plan{Programs: []plan.Program{{Name: "etcd", Path: "/2"}}}
	for name, c := range map[string]struct {
		status plan.Status
		next   plan.Plan
		told   bool
	}{
		"the plan is the same":                    {plan.Status{Revision: 2, Ready: true}, runs, false},
		"the plan is another":                     {plan.Status{Revision: 2, Ready: true}, another, true},
		"the command before was killed too early": {plan.Status{Revision: 1, Ready: true}, runs, true},
		"the keeper did not bring it about":       {plan.Status{Revision: 2, Error: "etcd did not become ready"}, runs, true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t)
			pretendRunning(t, cluster)
			told := make(chan os.Signal, 1)
			signal.Notify(told, syscall.SIGHUP)
			defer signal.Stop(told)
			if err := errors.Join(plan.Write(cluster.Dir(), plan.StatusFile, c.status), cluster.replan(runs, c.next)); err != nil {
				t.Fatal(err)
			}
			var onFile plan.Plan
			err := plan.Read(cluster.Dir(), plan.File, &onFile)
			if !c.told {
				if err == nil {
					t.Error("another plan was written")
				}
				return
			}
			<-told
			if want := c.next.Programs; err != nil || onFile.Revision != 3 || !cmp.Equal(want, onFile.Programs) {
				t.Errorf("the plan is %+v (%v)", onFile, err)
			}
		})
	}
}

func TestAnExitedKeeperIsNotSignalled(t *testing.T) {
	c, _ := newCluster(t)
	pretendRunning(t, c)
	var keeper plan.Keeper
	read := plan.Read(c.Dir(), plan.KeeperFile, &keeper)
	keeper.StartTime += "0" // its pid now belongs to another process, this test
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	defer signal.Stop(told)
	if err := errors.Join(read, plan.Write(c.Dir(), plan.KeeperFile, keeper), plan.Write(c.Dir(), plan.StatusFile, plan.Status{Error: "x"})); err != nil {
		t.Fatal(err)
	}
	wantSentence(t, c.replan(plan.Plan{}, plan.Plan{}), "the cluster's keeper has exited")
}

func TestAClusterWithOtherMountsIsRefusedAndKeepsItsFiles(t *testing.T) {
	c, runs := planned(t)
	runs.Network.Address = "10.0.0.1/8"
	write(t, keeperProgram(c.Dir()), "one")
	write(t, keeperProgram(c.newDir()), "one")
	wantSentence(t, c.changeable(runs, built{dir: c.newDir()}), "has other mounts or another network")
	if data, err := os.ReadFile(keeperProgram(c.newDir())); err != nil || string(data) != "one" {
		t.Errorf("what was built is not where it was (%v)", err)
	}
}

func TestTheKeeperItselfIsNotReplaced(t *testing.T) {
	c, _ := newCluster(t)
	write(t, keeperProgram(c.Dir()), "one")
	write(t, keeperProgram(c.newDir()), "two")
	wantSentence(t, c.changeable(c.frame(), built{dir: c.newDir()}),
		`cluster "unit-x" has another keeper than this checkout, and this cannot change while it runs; remove it first with: localcluster down --name=unit-x`)
	write(t, keeperProgram(c.newDir()), "one")
	write(t, filepath.Join(c.newDir(), "bin", "kubectl"), "new")
	write(t, filepath.Join(c.newDir(), ownImagesFile), "new")
	if err := c.installBuilt(built{dir: c.newDir()}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"bin/kubectl", ownImagesFile} {
		if data, err := os.ReadFile(filepath.Join(c.Dir(), file)); err != nil || string(data) != "new" {
			t.Errorf("%s was not replaced (%v)", file, err)
		}
	}
}

// A program restarts if a file that it reads changes.
func TestAChangedFileChangesThePlan(t *testing.T) {
	c, before := planned(t)
	again, err := c.plan(fakeBinaries(t), "/tools")
	if err != nil {
		t.Fatal(err)
	}
	if lines := differences(before.Programs, again.Programs); lines != nil || !same(frame(before), frame(again)) || !same(frame(before), c.frame()) {
		t.Errorf("the same checkout makes another plan: %q", lines)
	}
	for name, file := range map[string]string{"kubelet": "kubelet.yaml", "containerd": "containerd.toml", "kwok": "stages.yaml", "kube-apiserver": "audit-policy.yaml"} {
		t.Run(name, func(t *testing.T) {
			program := program(t, before, name)
			write(t, c.configFile(file), "another")
			if digest, err := c.digest(program); err != nil || digest == program.Files {
				t.Errorf("another %s is not seen (%v)", file, err)
			}
		})
	}
	if v := program(t, before, "etcd").Version; !strings.HasPrefix(v, "v3.") {
		t.Errorf("etcd has version %q", v)
	}
}
