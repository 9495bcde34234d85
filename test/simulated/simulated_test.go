// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/patience"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

func TestEveryUserHasAClusterWithThePlatform(t *testing.T) {
	for _, p := range people {
		t.Run(p.name, func(t *testing.T) {
			if out, err := p.up(t); err != nil {
				if p.uid != 0 && !namespacesGiven(p) { // then the command must say so, and do nothing else
					wantRefusal(t, p, out)
					return
				}
				t.Fatalf("up failed: %v", err)
			}
			story(t, p)
			if _, err := p.says(t, "down"); err != nil {
				t.Fatal("down failed")
			}
			wantNothingLeft(t, p)
		})
	}
}

// story runs a job on the platform while other things happen.
func story(t *testing.T, p person) {
	admin, alice := access(t, p)
	var tool *gitops
	if p.uid == 0 {
		tool = newGitops(t, p, admin)
	}
	submit(t, alice)
	refused := forNobody(t, admin)
	await(t, "the AppWrapper has succeeded", func(ctx context.Context) error { return succeeded(ctx, admin) })
	await(t, "a pod that nobody has a program for says so", func(ctx context.Context) error { return saysWhy(ctx, admin, refused) })
	before := theOperator(t, admin).RestartCount // it may have restarted while it waited for others
	killOperator(t, p)
	await(t, "an operator that was killed is ready again", func(ctx context.Context) error { return restarted(ctx, admin, before) })
	wantOperatorsToBeThemselves(t, p)
	if p.uid == 0 { // once is enough
		metrics := newScraper(t, p, admin, "appwrapper")
		newCrowd(t, admin, "quiet").staysQuiet(p, metrics)
		measure(t, p, admin, metrics)
		tool.appliesAgain()
		helmTakesOwnership(t, p, admin)
	}
}

// namespacesGiven reports whether this machine allows the person to create user namespaces.
func namespacesGiven(p person) bool {
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--net", "--mount", "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.uid)}}
	return cmd.Run() == nil
}

// A user namespace whose limit for nested ones is zero looks like a kernel without user
// namespaces.
func TestAMachineWithoutUserNamespacesSaysSo(t *testing.T) {
	nobody := people[1]
	inner := nobody.localcluster("up", "--mode=simulated")
	cmd := exec.Command("/bin/sh", append([]string{"-c", `echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --reuid="$0" --regid="$0" --clear-groups -- "$@"`,
		fmt.Sprint(nobody.uid)}, inner.Args...)...)
	cmd.Dir, cmd.Env = inner.Dir, inner.Env
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: nobody.uid, HostID: nobody.uid, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("up does not fail")
	}
	wantRefusal(t, nobody, string(out))
}

func wantRefusal(t *testing.T, p person, said string) {
	t.Helper()
	if !strings.HasPrefix(said, fmt.Sprintf("localcluster: user %d may not create user namespaces and mount in them on this machine (", p.uid)) ||
		!strings.Contains(said, "run the command with sudo") || strings.Count(said, "\n") != 1 {
		t.Errorf("it says %q", said)
	}
	wantNothingLeft(t, p)
}

func wantNothingLeft(t *testing.T, p person) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Dir(p.dir())); err == nil && len(left) > 0 && left[0].Name() != p.cluster()+".lock" {
		t.Errorf("%v is left", left)
	}
	for _, who := range []person{p, administrator} {
		left, err := p.leaks(who)
		left = slices.DeleteFunc(left, func(leak string) bool { return slices.Contains(leftByOthers, leak) })
		if err != nil || len(left) > 0 {
			t.Errorf("%s finds leaks: %q, error %v", who.name, left, err)
		}
	}
}

// access returns a client of the administrator, and one of a member of team blue.
func access(t *testing.T, p person) (admin client.WithWatch, alice client.Client) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.dir(), "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent = "test"
	asAlice := rest.CopyConfig(config)
	asAlice.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:authenticated"}}
	if err := workload.AddToScheme(clientgoscheme.Scheme); err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = rest.NoWarnings{}
	config.QPS = -1 // no client-side rate limit
	admin, err1 := client.NewWithWatch(config, client.Options{})
	alice, err2 := client.New(asAlice, client.Options{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return admin, alice
}

func await(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	patience.Await(t, what, condition)
}

func awaitFor(t *testing.T, limit time.Duration, what string, condition func(context.Context) error) {
	t.Helper()
	var missing error
	err := patience.PollFor(t.Context(), 200*time.Millisecond, limit, func(ctx context.Context) (bool, error) {
		missing = condition(ctx)
		return missing == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, missing)
	}
}

// team is alice's team, name the name of her AppWrapper.
const (
	team = "blue"
	name = "train"
)

func key() client.ObjectKey { return client.ObjectKey{Namespace: team, Name: name} }

func inTeam(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: team, Name: name} }

func succeeded(ctx context.Context, admin client.Client) error {
	aw := &workload.AppWrapper{}
	if err := admin.Get(ctx, key(), aw); err != nil {
		return err
	}
	if aw.Status.Phase != workload.AppWrapperSucceeded {
		return fmt.Errorf("it is %s", aw.Status.Phase)
	}
	pods := &corev1.PodList{}
	if err := admin.List(ctx, pods, client.InNamespace(team), client.MatchingLabels{"job-name": name}); err != nil {
		return err
	}
	if len(pods.Items) != 4 {
		return fmt.Errorf("%d pods have run", len(pods.Items))
	}
	for _, pod := range pods.Items {
		if !strings.HasPrefix(pod.Spec.NodeName, "gpu-") {
			return fmt.Errorf("pod %s ran on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	return nil
}

func saysWhy(ctx context.Context, admin client.Client, pod *corev1.Pod) error {
	if err := admin.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && strings.Contains(w.Message, "has no program for image registry.example/other:1") {
			return admin.Delete(ctx, pod)
		}
	}
	return fmt.Errorf("its status is %v", pod.Status)
}

// theOperator returns the container status of the operator that is killed.
func theOperator(t *testing.T, admin client.Client) corev1.ContainerStatus {
	t.Helper()
	c, err := operator(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func operator(ctx context.Context, admin client.Client) (corev1.ContainerStatus, error) {
	pods := &corev1.PodList{}
	if err := admin.List(ctx, pods, client.InNamespace(platform.Namespace)); err != nil {
		return corev1.ContainerStatus{}, err
	}
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, "kuberay-operator") && len(pod.Status.ContainerStatuses) == 1 {
			return pod.Status.ContainerStatuses[0], nil
		}
	}
	return corev1.ContainerStatus{}, errors.New("there is no operator")
}

func restarted(ctx context.Context, admin client.Client, before int32) error {
	c, err := operator(ctx, admin)
	if err == nil && (c.RestartCount <= before || !c.Ready) {
		err = fmt.Errorf("its restarts are %d, %d before, and it is ready: %t", c.RestartCount, before, c.Ready)
	}
	return err
}
