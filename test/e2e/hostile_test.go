// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
)

// attack is a way past the platform's limits, with no rights but a member's. Everything here was
// done on a running platform before it had policies. TestAHostileMemberIsRefused tries each with
// all defences, and TestUndefendedAttacksSucceed without.
type attack struct {
	name string
	// answer is part of what the API server says when it refuses the attack. Two policies may refuse it: the API server
	// repeats the words of one, and nothing says which, so both are here, with a | between them.
	answer string
	// victims exist before.
	victims []victim
	// dies is set if the attack begins with the end of its victim.
	dies bool
	// prepare is for what only an attack that succeeds needs.
	prepare func(*story, context.Context)
	// try returns what is said if it is refused. It may be tried again.
	try func(*story, context.Context) error
	// won returns "" once the attack has succeeded, and otherwise what is missing.
	won func(*story, context.Context) (string, error)
	// found is what mlbatch audit says about a successful attack; nothing if docs/audit.md says why.
	found found
}

// found is a rule, the beginning of an object's kind and name, and a part of the evidence.
type found struct{ rule, object, evidence string }

// victim is work of the member's own, with quota.
type victim struct {
	object func(*story) client.Object
	// ready returns "" once there is something to attack, and otherwise what is missing.
	ready func(*story, context.Context) (string, error)
}

// Each attack is tried with the member's own credentials, and changes nothing.
func TestAHostileMemberIsRefused(t *testing.T) {
	testenv.Test(t, features.New("hostile").Assess("every attack is refused", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-hostile", "mallory", needs.Pods, needs.RayPods, needs.EveryKind, needs.Machine)
		s.befriend(ctx, t, cfg)
		s.untilTypesFit(ctx)
		s.untilAttackable(ctx, func(a attack) bool { return !a.dies })
		before := s.world(ctx)
		s.untilAttackable(ctx, func(a attack) bool { return a.dies })
		for _, a := range attacks {
			if err := a.try(s, ctx); err == nil || !a.isAnswered(err.Error()) {
				t.Errorf("%s: the API server answers: %v", a.name, err)
			}
		}
		s.triesInVain(ctx)
		s.goesNow(ctx, "handed")
		s.until(ctx, "the world is as before", func(ctx context.Context) (string, error) {
			if after := s.world(ctx); after != before {
				return fmt.Sprintf("it was\n%s\nand is\n%s", before, after), nil
			}
			return "", nil
		})
		return ctx
	}).Feature())
}

func (a attack) isAnswered(message string) bool {
	return slices.ContainsFunc(strings.Split(a.answer, "|"), func(words string) bool { return strings.Contains(message, words) })
}

// befriend gives another user Kubernetes' own role edit, which has more rights than a member.
func (s *story) befriend(ctx context.Context, t *testing.T, cfg *envconf.Config) {
	s.t.Helper()
	s.editor = as(t, cfg, "e2e-edgar")
	s.bind(ctx, "edit", "e2e-edgar")
}

// untilAttackable creates the victims of these attacks.
func (s *story) untilAttackable(ctx context.Context, which func(attack) bool) {
	s.t.Helper()
	var all []victim
	for _, a := range attacks {
		if which(a) {
			all = append(all, a.victims...)
		}
	}
	s.makes(ctx, all)
}

// makes creates work, and waits until all of it can be attacked.
func (s *story) makes(ctx context.Context, victims []victim) {
	s.t.Helper()
	for _, v := range victims {
		object := v.object(s)
		object.SetNamespace(s.namespace)
		if err := s.user.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			s.t.Fatalf("cannot create %s: %v", object.GetName(), err)
		}
		s.created = append(s.created, object)
	}
	for _, v := range victims {
		s.until(ctx, v.object(s).GetName()+" can be attacked", func(ctx context.Context) (string, error) { return v.ready(s, ctx) })
	}
}

// untilTypesFit waits until the API server has checked the policies against the schemas of what
// they judge. An expression that does not fit some kind would refuse all objects of that kind.
func (s *story) untilTypesFit(ctx context.Context) {
	s.t.Helper()
	s.until(ctx, "the policies fit the schemas", func(ctx context.Context) (string, error) {
		policies := &admissionv1.ValidatingAdmissionPolicyList{}
		err := s.admin.GetControllerRuntimeClient().List(ctx, policies, client.MatchingLabels{"app.kubernetes.io/part-of": "mlbatch"})
		for _, p := range policies.Items {
			if p.Status.TypeChecking == nil || p.Status.ObservedGeneration != p.Generation {
				return p.Name + " was not checked", err
			}
			for _, w := range p.Status.TypeChecking.ExpressionWarnings {
				s.t.Errorf("%s, %s: %s", p.Name, w.FieldRef, w.Warning)
			}
		}
		return "", err
	})
}

// world is what an attack could change: objects, their specs, keepers and quota. Operators create
// Services and PodGroups at times of their own.
func (s *story) world(ctx context.Context) string {
	s.t.Helper()
	var lines []string
	for _, list := range kinds() {
		switch list.(type) {
		case *corev1.ServiceList, *podgroup.PodGroupList:
			continue
		}
		if err := s.admin.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
			s.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			o, err := meta.Accessor(item)
			if err == nil {
				lines = append(lines, fmt.Sprintf("%T %s of generation %d, kept by %q, deleted: %t, with quota for %d pods",
					item, o.GetName(), o.GetGeneration(), o.GetFinalizers(), o.GetDeletionTimestamp() != nil, podsWithQuota(item)))
			}
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return strings.Join(lines, "\n")
}
