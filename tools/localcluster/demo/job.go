// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	workload "github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

// A member of team blue submits the job in the team's namespace.
const (
	team      = "blue"
	submitter = "alice"
)

// renderJob renders a settings file to an AppWrapper with the generator.
func renderJob(ctx context.Context, site platform.Site, settings string) (*workload.AppWrapper, error) {
	if err := site.PackageCharts(ctx); err != nil {
		return nil, err
	}
	manifest, err := site.Template(ctx, "pytorchjob-generator", settings)
	if err != nil {
		return nil, err
	}
	job := &workload.AppWrapper{}
	if err := yaml.Unmarshal([]byte(manifest), job); err != nil {
		return nil, fmt.Errorf("cannot read the rendered job: %w", err)
	}
	job.Namespace = team
	return job, nil
}

// access has the clients of the demo.
type access struct {
	admin client.WithWatch
	user  client.Client
	pods  kubernetes.Interface
}

func newAccess(config *rest.Config) (access, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), workload.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), kueue.AddToScheme(scheme), podgroup.AddToScheme(scheme))
	if err != nil {
		return access{}, fmt.Errorf("cannot set up the client: %w", err)
	}
	asUser := rest.CopyConfig(config)
	asUser.Impersonate = rest.ImpersonationConfig{UserName: submitter, Groups: []string{"system:authenticated"}}
	admin, err1 := client.NewWithWatch(config, client.Options{Scheme: scheme})
	user, err2 := client.New(asUser, client.Options{Scheme: scheme})
	pods, err3 := kubernetes.NewForConfig(config)
	if err := errors.Join(err1, err2, err3); err != nil {
		return access{}, fmt.Errorf("cannot connect to the cluster: %w", err)
	}
	return access{admin: admin, user: user, pods: pods}, nil
}

// How long a submission waits: for the job of an earlier demo to be deleted, and for a new
// role binding to take effect.
const (
	removalTimeout = 2 * time.Minute
	roleTimeout    = 10 * time.Second
)

var errStillThere = errors.New("that of an earlier demo is still being deleted; see why with 'kubectl describe'")

// submit creates an object as the user. It replaces that of an earlier demo.
func (a access) submit(ctx context.Context, object client.Object) error {
	began := time.Now()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, removalTimeout, true, func(ctx context.Context) (bool, error) {
		last = a.user.Create(ctx, copyOf(object))
		switch {
		case apierrors.IsAlreadyExists(last):
			last = errStillThere
			return false, client.IgnoreNotFound(a.user.Delete(ctx, copyOf(object)))
		case apierrors.IsForbidden(last) && time.Since(began) < roleTimeout:
			return false, nil
		}
		return last == nil, last
	})
	if wait.Interrupted(err) {
		err = last
	}
	if err != nil {
		return fmt.Errorf("cannot submit %s as %s: %w", object.GetName(), submitter, err)
	}
	return nil
}

// copyOf is what a client may change.
func copyOf(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }
