// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package scenes_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/test/recording"
	"github.com/mlbatch/mlbatch/test/sandbox"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// nodes are some for all scenes, and then those of the pools.
const nodes = 18

// limit is for one scene, while many others are made.
const limit = 2 * time.Minute

// A scene makes work that is called train, and makes something wrong. Its code is the key in a list of scenes.
type scene struct {
	set func(*place)
	// later is how much time passes for why, which then need not wait until somebody has been silent for long.
	later time.Duration
	// member asks as somebody who may not read what belongs to others.
	member bool
}

// beside are scenes that do not disturb each other.
var beside = []map[explain.Code]scene{queues, shares, preemptions, refusals, placement, lives, ends}

// TestScenes makes all scenes on one cluster.
func TestScenes(t *testing.T) {
	w := newWorld(t)
	t.Run("beside each other", func(t *testing.T) {
		for _, list := range beside {
			for _, code := range slices.Sorted(maps.Keys(list)) {
				t.Run(string(code), func(t *testing.T) {
					t.Parallel()
					w.play(t, code, list[code])
				})
			}
		}
	})
	for _, s := range alone {
		t.Run(string(s.code), func(t *testing.T) { w.play(t, s.code, s.scene) })
	}
}

// play makes a scene, and waits until why names its cause.
func (w *world) play(t *testing.T, code explain.Code, s scene) {
	t.Helper()
	p := w.newPlace(t, code)
	s.set(p)
	stage := recording.Stage{Client: w.reader, On: "a simulated cluster"}
	if s.member {
		stage.Client = p.asMember()
	}
	target := why.Target{Kind: p.kind, Namespace: p.namespace, Name: "train"}
	err := sandbox.Within(t.Context(), limit, func() error { return stage.Names(t.Context(), code, target, s.later) })
	if err != nil {
		t.Fatalf("%v\n%s", err, stage.Read(t.Context(), target))
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	admin, cluster := sandbox.Start(t, "scenes", 26691, nodes, sandbox.WithRuns())
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	w := &world{admin: admin, config: config}
	if w.reader, err = client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: why.Mapper()}); err != nil {
		t.Fatal(err)
	}
	w.prepare(t)
	return w
}
