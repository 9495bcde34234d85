// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package siege_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mlbatch/mlbatch/test/siege/grammar"
	"github.com/mlbatch/mlbatch/test/siege/referee"
)

// actor sends the calls of an episode in one namespace.
type actor struct {
	*world
	namespace, episode string
}

// play sends calls, one after the other, and counts each.
func (a actor) play(ctx context.Context, calls []grammar.Call, count func(grammar.Call, error)) {
	created := false
	for _, c := range calls {
		if ctx.Err() != nil {
			return
		}
		if c.Verb == grammar.Wait {
			if created {
				a.wait(ctx, c)
			}
			continue
		}
		var both sync.WaitGroup
		for twin := &c; twin != nil; twin = twin.Twin {
			both.Go(func() {
				err := a.send(ctx, *twin)
				count(*twin, err)
				created = created || err == nil
			})
		}
		both.Wait()
	}
}

// wait lets controllers work for a second, and longer if there are no pods yet. An attacker waits no longer on a slow
// machine.
func (a actor) wait(ctx context.Context, c grammar.Call) {
	limit, begin := time.Duration(c.Body.(int64))*time.Second, time.Now()
	pause(ctx, time.Second)
	for ctx.Err() == nil && time.Since(begin) < limit && len(a.named(ctx, "pods")) == 0 {
		pause(ctx, time.Second/2)
	}
}

// pause does nothing for a time.
func pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

// named are the names of what belongs to the episode, of one resource.
func (a actor) named(ctx context.Context, resource string) (names []string) {
	list, err := a.of(a.see, resource).List(ctx, metav1.ListOptions{ResourceVersion: "0"}) // from the cache, because it is asked often
	if err != nil {
		return nil
	}
	for _, o := range list.Items {
		if referee.EpisodeOf(o.GetName()) == a.episode {
			names = append(names, o.GetName())
		}
	}
	slices.Sort(names)
	return names
}

func (a actor) of(api dynamic.Interface, resource string) dynamic.ResourceInterface {
	return api.Resource(a.resources[resource]).Namespace(a.namespace)
}

// errNone is for a call that was not sent, because no controller has made what it names.
var errNone = errors.New("nobody has made any")

func (a actor) send(ctx context.Context, c grammar.Call) error {
	body, err := grammar.Text(c.Body, a.episode, func(resource, name string) string { return a.uid(ctx, resource, name) })
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(c.Name, grammar.Episode, a.episode)
	if name == "" {
		names := a.named(ctx, c.Resource)
		if len(names) == 0 {
			return errNone
		}
		name = names[c.Nth%len(names)]
	}
	api := a.of(a.acts[a.namespace], c.Resource)
	switch c.Verb {
	case grammar.Create:
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(body); err != nil {
			return err
		}
		_, err = api.Create(ctx, o, metav1.CreateOptions{})
	case grammar.Patch:
		_, err = api.Patch(ctx, name, patchTypes[c.Type], body, optionsOf(c.Type))
	case grammar.Scale:
		_, err = api.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "scale")
	case grammar.Delete:
		err = api.Delete(ctx, name, deletion(c))
	}
	return err
}

var patchTypes = map[string]types.PatchType{grammar.Merge: types.MergePatchType, grammar.JSON: types.JSONPatchType, grammar.Apply: types.ApplyYAMLPatchType}

func optionsOf(kind string) metav1.PatchOptions {
	if kind != grammar.Apply {
		return metav1.PatchOptions{}
	}
	return metav1.PatchOptions{FieldManager: manager, Force: new(true)}
}

func deletion(c grammar.Call) metav1.DeleteOptions {
	options := metav1.DeleteOptions{GracePeriodSeconds: c.Grace}
	if c.Propagation != "" {
		options.PropagationPolicy = new(metav1.DeletionPropagation(c.Propagation))
	}
	return options
}

// uid is an object's, or one that no object has.
func (a actor) uid(ctx context.Context, resource, name string) string {
	o, err := a.of(a.see, resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "00000000-0000-0000-0000-000000000000"
	}
	return string(o.GetUID())
}

// clear deletes what an episode has created, as its author would.
func (a actor) clear(ctx context.Context, calls []grammar.Call) {
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	done := map[string]bool{}
	for _, c := range calls {
		for twin := &c; twin != nil; twin = twin.Twin {
			name := strings.ReplaceAll(twin.Name, grammar.Episode, a.episode)
			if twin.Verb != grammar.Create || done[twin.Resource+name] {
				continue
			}
			done[twin.Resource+name] = true
			api := a.of(a.acts[a.namespace], twin.Resource)
			if err := api.Delete(ctx, name, background); apierrors.IsNotFound(err) {
				continue
			} else if err != nil {
				a.Logf("%s in %s: its author cannot delete %s %s: %v", a.episode, a.namespace, twin.Resource, name, err)
			}
		}
	}
}

// outcome sorts an answer.
func outcome(err error) string {
	if err == nil {
		return "accepted"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprintf("%d", status.Status().Code)
	}
	return "not sent"
}
