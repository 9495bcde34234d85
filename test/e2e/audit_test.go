// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/audit"
	"github.com/mlbatch/mlbatch/tools/mlbatch/snapshot"
)

// grace is the default of mlbatch audit.
const grace = 2 * time.Minute

// watchedAudit does what mlbatch audit --watch does, from before the first story until after the
// last. Whatever it finds fails the run, unless a story has announced it.
type watchedAudit struct {
	api   client.Client
	stop  context.CancelFunc
	ended chan struct{}
	seen  audit.Sightings

	mu       sync.Mutex
	expected map[string]bool // namespaces
	looks    int
	found    []error
	last     error // why the last look failed
}

var auditing *watchedAudit

func watchAudit(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	if !here.Own {
		return ctx, nil // we do not judge the work of others
	}
	looking, stop := context.WithCancel(ctx)
	auditing = &watchedAudit{api: cfg.Client().Resources().GetControllerRuntimeClient(), stop: stop, ended: make(chan struct{}), expected: map[string]bool{}}
	go auditing.follow(looking)
	return ctx, nil
}

func (w *watchedAudit) follow(ctx context.Context) {
	defer close(w.ended)
	for ctx.Err() == nil {
		w.look(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}

// look tolerates more on a busy machine, where pods need longer to end.
func (w *watchedAudit) look(ctx context.Context) {
	m, err := snapshot.Read(ctx, w.api, time.Now(), nil)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last = err; err != nil {
		return
	}
	w.looks++
	appeared, _ := w.seen.Next(m.Findings(audit.Tolerance{Grace: patience.For(grace)}))
	w.add(m, appeared)
}

func (w *watchedAudit) add(m audit.Moment, appeared []audit.Finding) {
	for _, f := range appeared {
		_, object, _ := strings.Cut(f.Object, " ")
		if namespace, _, _ := strings.Cut(object, "/"); w.expected[namespace] {
			continue
		}
		fmt.Fprintf(os.Stderr, "-- audit, revision %s: %s: %s: %s\n", m.Revision, f.Rule, f.Object, f.Evidence)
		if !f.Note {
			w.found = append(w.found, fmt.Errorf("mlbatch audit: %s: %s: %s", f.Rule, f.Object, f.Evidence))
		}
	}
}

// expect excludes a namespace, which only a test that gets past the quota on purpose has: what it leaves behind is
// found until it is gone, after the end of the test.
func (w *watchedAudit) expect(namespace string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected[namespace] = true
}

func (w *watchedAudit) end() error {
	if w == nil {
		return nil
	}
	w.stop()
	<-w.ended
	// One look that failed says nothing, unless there is no other after it.
	blind := await(context.Background(), func(ctx context.Context) (string, error) {
		if w.last != nil {
			w.look(ctx)
		}
		return "", w.last
	})
	fmt.Fprintf(os.Stderr, "-- audit: %d looks, %d findings\n", w.looks, len(w.found))
	return errors.Join(append(w.found, blind)...)
}

// auditFinds returns "" once mlbatch audit finds what an attack has done.
func (s *story) auditFinds(ctx context.Context, want found) (string, error) {
	m, err := snapshot.Read(ctx, s.admin.GetControllerRuntimeClient(), time.Now(), []string{s.namespace})
	tolerated := audit.Tolerance{Grace: grace}
	if want.rule == "idle-quota" {
		tolerated.Grace = time.Second // by default, it is found after ten minutes
	}
	all := m.Findings(tolerated)
	for _, f := range all {
		kind, name, _ := strings.Cut(f.Object, " ")
		if f.Rule == want.rule && strings.HasPrefix(kind+" "+strings.TrimPrefix(name, s.namespace+"/"), want.object) && strings.Contains(f.Evidence, want.evidence) {
			return "", nil
		}
	}
	return fmt.Sprintf("it finds %+v", all), err
}

// The role has every right that the command needs, and no other.
func TestAnAuditorNeedsTheRoleOnly(t *testing.T) {
	testenv.Test(t, features.New("auditor").Assess("the role is enough", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-applied", "amy", needs.Pods)
		s.makes(ctx, []victim{wrapper("seen", 1, lingers)})
		auditor := as(t, cfg, "e2e-audrey")
		_, err := snapshot.Read(ctx, auditor, time.Now(), nil)
		if !errors.Is(err, snapshot.ErrForbidden) {
			t.Errorf("without the role: %v", err)
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "e2e-audrey"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mlbatch-audit"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "e2e-audrey"}},
		}
		admin := s.admin.GetControllerRuntimeClient()
		if err := admin.Create(ctx, binding); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), binding); err != nil {
				t.Error(err)
			}
		})
		s.until(ctx, "the auditor sees the pod", func(ctx context.Context) (string, error) {
			m, err := snapshot.Read(ctx, auditor, time.Now(), []string{s.namespace})
			if err != nil {
				return err.Error(), nil
			}
			if len(m.Unread) > 0 || len(m.Owners) == 0 || len(m.Pods) == 0 {
				return fmt.Sprintf("%d pods, %d owners, unread: %v", len(m.Pods), len(m.Owners), m.Unread), nil
			}
			return "", nil
		})
		return ctx
	}).Feature())
}
