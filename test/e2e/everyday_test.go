// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/e2e/needs"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/checkup"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/top"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clustercheck"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podexec"
	"github.com/mlbatch/mlbatch/tools/mlbatch/podlogs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/runs"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
	"github.com/mlbatch/mlbatch/tools/mlbatch/work"
)

// A member of a team uses each of the everyday commands, with no other rights than those of the role.
func TestAMemberUsesTheEverydayCommands(t *testing.T) {
	testenv.Test(t, features.New("every day").Assess("each command does what it says", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
		s := tell(t, cfg, "e2e-failing", "frank", needs.Pods)
		m := s.member(cfg, "frank")
		sleeper, speaker := wrapped("sleeper", job("sleeper", "100m", "sleep", "1h"), nil), wrapped("speaker", job("speaker", "100m", "print", "good morning"), nil)
		failer := wrapped("failer", job("failer", "100m", "exit", "3"), map[string]string{workload.RetryLimitAnnotation: "0"})
		s.runs(ctx, sleeper)
		s.untilRunning(ctx, "sleeper", 1)
		s.create(ctx, speaker)
		s.create(ctx, failer)

		if err := work.Wait(ctx, m.client, m.find(ctx, "speaker"), io.Discard); err != nil {
			t.Errorf("speaker has succeeded, but wait says: %v", err)
		}
		if err := work.Wait(ctx, m.client, m.find(ctx, "failer"), io.Discard); err == nil || !strings.HasPrefix(err.Error(), "AppWrapper failer has failed: ") {
			t.Errorf("failer has failed, but wait says: %v", err)
		}
		m.sees(ctx, map[string]string{"sleeper": "Running", "speaker": "Succeeded", "failer": "Failed"})
		m.hasAStatus(ctx)
		m.hasLogs(ctx)
		m.runsCommands(ctx)
		m.seesTheTeam(ctx)
		m.seesWhatWasUsed(ctx)
		m.checksTheCluster(ctx, cfg)
		m.retriesAndCancels(ctx, sleeper, failer)
		return ctx
	}).Feature())
}

// member is the user of a story with the clients of the command.
type member struct {
	*story
	client client.WithWatch
	typed  kubernetes.Interface
	config *rest.Config
}

func (s *story) member(cfg *envconf.Config, user string) member {
	s.t.Helper()
	config := rest.CopyConfig(cfg.Client().RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	scheme, err := runs.Scheme()
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: why.Mapper()})
	if err != nil {
		s.t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return member{s, c, typed, config}
}

// runsCommands in a pod. The role allows that by POST, so WebSockets are refused.
func (m member) runsCommands(ctx context.Context) {
	m.t.Helper()
	pod, err := work.PodOf(ctx, m.client, m.find(ctx, "sleeper"), work.Selection{})
	if err != nil {
		m.t.Fatal(err)
	}
	for line, want := range map[string]struct {
		out string
		err error
	}{"print evening": {"evening\n", nil}, "exit 7": {"", podexec.Ended(7)}} {
		var out, progress bytes.Buffer
		err := podexec.Run(ctx, m.config, pod, podexec.Command{
			Container: podlogs.Container(pod), Line: append([]string{"/workload"}, strings.Fields(line)...), Out: &out, Err: &progress,
		})
		if out.String() != want.out || !errors.Is(err, want.err) {
			m.t.Errorf("%s: got %q, %q, %v", line, &out, &progress, err)
		}
	}
}

func (m member) find(ctx context.Context, name string) explain.Objects {
	m.t.Helper()
	found, err := why.Find(ctx, m.client, why.Target{Namespace: m.namespace, Name: name})
	if err != nil {
		m.t.Fatal(err)
	}
	return found
}

func (m member) sees(ctx context.Context, want map[string]string) {
	m.t.Helper()
	all, err := work.List(ctx, m.client, m.namespace, time.Now())
	if err != nil || len(all.Items) != len(want) || len(all.Unknown) > 0 {
		m.t.Errorf("list says %+v, %v", all, err)
	}
	for _, i := range all.Items {
		if i.State != want[i.Name] || i.Queue != "default-queue" || i.Kind != "AppWrapper" {
			m.t.Errorf("list says %+v, want %s", i, want[i.Name])
		}
	}
	if _, err := work.List(ctx, m.client, "e2e-blue", time.Now()); err == nil || !strings.HasPrefix(err.Error(), "you may not list appwrappers in namespace e2e-blue: ") {
		m.t.Errorf("list of another team says: %v", err)
	}
}

func (m member) hasAStatus(ctx context.Context) {
	m.t.Helper()
	r, err := work.Status(ctx, m.client, why.Target{Namespace: m.namespace, Name: "sleeper"}, time.Now())
	if err != nil || len(r.Pods) != 1 || r.Pods[0].Node == "" || len(r.Components) != 1 || r.Components[0].State != "created" || len(r.Unknown) > 0 {
		m.t.Errorf("the status of sleeper is %+v, %v", r, err)
	}
	r, err = work.Status(ctx, m.client, why.Target{Namespace: m.namespace, Name: "failer"}, time.Now())
	if err != nil || r.LastFailure == nil || r.LastFailure.Reason != workload.ReasonFailedComponent {
		m.t.Errorf("the status of failer is %+v, %v", r, err)
	}
}

func (m member) hasLogs(ctx context.Context) {
	m.t.Helper()
	open := func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		return m.typed.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
	}
	for want, selection := range map[string]work.Selection{"good morning": {}, "] good morning": {All: true}} {
		var out bytes.Buffer
		if err := work.Logs(ctx, m.client, open, m.find(ctx, "speaker"), selection, &out); err != nil || !strings.Contains(out.String(), want) {
			m.t.Errorf("the log of speaker is %q, %v", &out, err)
		}
	}
	m.until(ctx, "the pods of failer are gone, and logs says so", func(ctx context.Context) (string, error) {
		err := work.Logs(ctx, m.client, open, m.find(ctx, "failer"), work.Selection{}, io.Discard)
		if err != nil && strings.HasPrefix(err.Error(), "AppWrapper failer has no pods any more, and their logs are gone with them: it is Failed: ") {
			return "", nil
		}
		return "logs says: " + fmtError(err), nil
	})
}

func fmtError(err error) string {
	if err == nil {
		return "nothing"
	}
	return err.Error()
}

func (m member) seesTheTeam(ctx context.Context) {
	m.t.Helper()
	objects, err := clusterstate.Top(ctx, m.client, m.namespace, "")
	overview := top.Judge(objects, "")
	if err != nil || len(overview.Notes) == 0 || !strings.HasPrefix(overview.Notes[0], "you may not list nodes: ") {
		m.t.Errorf("top says %+v, %v", overview.Notes, err)
	}
	if _, err := clusterstate.Top(ctx, m.client, m.namespace, top.ByNode); err == nil || !strings.HasPrefix(err.Error(), "you may not list nodes: ") {
		m.t.Errorf("top by node says: %v", err)
	}
	for _, team := range overview.Teams {
		if team.Name == m.queue() && (team.Running < 1 || len(team.Quota) == 0 || team.Namespaces[0] != m.namespace) {
			m.t.Errorf("top says of the team: %+v", team)
		}
	}
}

// seesWhatWasUsed compares the books with Kueue's own: to two seconds of a tenth of a core for each AppWrapper, and
// more on a busy machine, where each of both takes note later.
func (m member) seesWhatWasUsed(ctx context.Context) {
	m.t.Helper()
	objects, err := clusterstate.Usage(ctx, m.client, "", m.namespace)
	r := usage.Count(objects, usage.Query{By: "appwrapper"}, time.Now())
	if err != nil || len(r.Rows) != 3 || len(r.Kueue) != 1 || !strings.HasPrefix(r.Notes[0], "you may not list appwrappers in all namespaces: ") {
		m.t.Fatalf("usage says %+v, %v", r, err)
	}
	tolerated := usage.Hours(3 * 100 * patience.For(2*time.Second).Seconds())
	if c := r.Kueue[0]; c.Compared != 3 || c.Books == 0 || c.Books-c.Kueue > tolerated || c.Kueue-c.Books > tolerated {
		m.t.Errorf("usage says %+v of %+v", c, r.Rows)
	}
}

// checksTheCluster looks as an administrator, who finds no error in a new cluster, and as a member,
// who is told what was not checked.
func (m member) checksTheCluster(ctx context.Context, cfg *envconf.Config) {
	m.t.Helper()
	look := func(config *rest.Config) checkup.Report {
		c, err := client.New(config, client.Options{Scheme: m.client.Scheme(), Mapper: clustercheck.Mapper()})
		if err != nil {
			m.t.Fatal(err)
		}
		objects, err := clustercheck.Read(ctx, c, time.Now())
		if err != nil {
			m.t.Fatal(err)
		}
		return checkup.Find(objects)
	}
	r := look(cfg.Client().RESTConfig())
	if here.Own && r.Has(checkup.Error) || r.Installed == nil || !*r.Installed || len(r.Unknown) > 0 {
		m.t.Errorf("check finds %+v, and does not know %q", r.Findings, r.Unknown)
	}
	for _, f := range r.Findings {
		m.t.Logf("check: %s %s %s %v", f.Severity, f.Code, f.Subject, f.Evidence)
	}
	as := rest.CopyConfig(cfg.Client().RESTConfig())
	as.Impersonate = rest.ImpersonationConfig{UserName: "frank", Groups: []string{"system:authenticated"}}
	if r := look(as); r.Installed != nil || len(r.Findings) > 0 || !slices.Contains(r.Unknown, "you may not list nodes: ask an administrator for a role with this right") {
		m.t.Errorf("check of a member finds %+v, and does not know %q", r.Findings, r.Unknown)
	}
}

// retriesAndCancels repeats what has failed, and ends what runs.
func (m member) retriesAndCancels(ctx context.Context, sleeper, failer *workload.AppWrapper) {
	m.t.Helper()
	m.until(ctx, "failer can be repeated", func(ctx context.Context) (string, error) {
		if err := work.Retry(ctx, m.client, m.find(ctx, "failer"), work.Change{}, io.Discard); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
	again := failer.DeepCopy()
	again.Name = "failer-2"
	m.untilPhase(ctx, again, workload.AppWrapperFailed)
	more := again.DeepCopy()
	more.Name = "speaker-2"
	m.created = append(m.created, more)
	if err := work.Retry(ctx, m.client, m.find(ctx, "speaker"), work.Change{}, io.Discard); err != nil {
		m.t.Errorf("speaker, which keeps its resources, is not repeated: %v", err)
	} else if err := work.Wait(ctx, m.client, m.find(ctx, "speaker-2"), io.Discard); err != nil {
		m.t.Errorf("speaker-2 has succeeded, but wait says: %v", err)
	}
	deletion := m.watches(ctx, "sleeper")
	for _, aw := range []*workload.AppWrapper{sleeper, again} {
		if err := work.Cancel(ctx, m.client, m.find(ctx, aw.Name), io.Discard); err != nil {
			m.t.Error(err)
		}
		m.until(ctx, aw.Name+" is gone", func(ctx context.Context) (string, error) { return m.stillThere(ctx, aw) })
	}
	select {
	case err := <-deletion:
		if err == nil || err.Error() != "sleeper was deleted in namespace "+m.namespace {
			m.t.Errorf("why --watch ends with: %v", err)
		}
	case <-time.After(patience.For(patience.Limit)):
		m.t.Error("why --watch does not end")
	}
}

// watches is why --watch of work that is deleted after it returns. It does not look again unless a watch tells of
// something.
func (m member) watches(ctx context.Context, name string) <-chan error {
	m.t.Helper()
	shown, ended := make(chan struct{}, 1), make(chan error, 1)
	show := func(explain.Explanation, time.Time) error {
		select {
		case shown <- struct{}{}:
		default:
		}
		return nil
	}
	pace := why.Pace{Least: time.Second, Most: time.Hour}
	go func() {
		ended <- why.Watch(ctx, m.client, why.Target{Namespace: m.namespace, Name: name}, pace, why.Screen{Show: show, Unsure: func(err error) { m.t.Log(err) }})
	}()
	select {
	case <-shown:
	case err := <-ended:
		m.t.Fatalf("why --watch does not begin: %v", err)
	}
	return ended
}
