// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// asks is a member who keeps submitting objects as dry runs.
type asks struct {
	*site
	stop context.CancelFunc
	done sync.WaitGroup
	made map[string]int
	// refused counts the refused requests by error message.
	refused map[string]int
}

// keepAsking starts submitting.
func (s *site) keepAsking() *asks {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	a := &asks{site: s, stop: stop, made: map[string]int{}, refused: map[string]int{}}
	var objects []*unstructured.Unstructured
	for _, file := range []string{"steady", "bare"} {
		text, err := os.ReadFile(filepath.Join("testdata", "work", file+".yaml"))
		s.must(err)
		object := &unstructured.Unstructured{}
		s.must(yaml.Unmarshal(text, &object.Object))
		object.SetName("asked")
		objects = append(objects, object)
	}
	a.done.Go(func() {
		for tick := time.Tick(100 * time.Millisecond); ctx.Err() == nil; <-tick {
			for _, object := range objects {
				a.ask(ctx, object.DeepCopy())
			}
		}
	})
	return a
}

func (a *asks) ask(ctx context.Context, object *unstructured.Unstructured) {
	kind := object.GetKind()
	err := a.alice.Create(ctx, object, client.DryRunAll)
	if ctx.Err() != nil {
		return
	}
	a.made[kind]++
	if err != nil {
		a.refused[fmt.Sprintf("%s: %s", kind, strings.ReplaceAll(err.Error(), "\n", " "))]++
	}
}

// end stops submitting, and prints what was refused.
func (a *asks) end() {
	a.stop()
	a.done.Wait()
	for why, times := range a.refused {
		a.Logf("refused %d times: %s", times, why)
	}
	a.Logf("submitted meanwhile, as dry runs: %v", a.made)
}
