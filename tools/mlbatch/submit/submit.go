// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	generator "github.com/mlbatch/mlbatch/tools/pytorchjob-generator"
)

// Job is a rendered job on its way to a cluster.
type Job struct {
	// Manifest is what helm template renders, too.
	Manifest   string
	version    string
	settings   map[string]any
	appWrapper *v1beta2.AppWrapper
}

// New renders a job. Version is that of the generator.
func New(version string, settings map[string]any) (Job, error) {
	manifest, err := generator.Render(version, settings)
	if err != nil {
		return Job{}, err
	}
	aw, err := generator.AppWrapper(manifest)
	return Job{Manifest: manifest, version: version, settings: settings, appWrapper: aw}, err
}

// In puts the job into a namespace that somebody has chosen, or else into its own one, or
// else into that of the present context. The manifest says so, too.
func (j *Job) In(chosen, present string) error {
	own := j.appWrapper.Namespace
	if own != "" && chosen != "" && own != chosen {
		return fmt.Errorf("the settings say namespace %s and --namespace says %s: leave one of them out", own, chosen)
	}
	for _, namespace := range []string{own, chosen, present} {
		if namespace != "" {
			settings := maps.Clone(j.settings)
			settings["namespace"] = namespace
			there, err := New(j.version, settings)
			*j = there
			return err
		}
	}
	return errors.New("name the team's namespace with --namespace")
}

// Scheme has the kinds that are read and written here.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta2.AddToScheme(scheme), kueue.AddToScheme(scheme))
	return scheme, err
}

// Check says in a sentence why the job can never run, if that is so, and in notes what
// the user may not look at.
func (j Job) Check(ctx context.Context, c client.Client, notes io.Writer) error {
	all, err := check(ctx, c, j.appWrapper)
	for _, note := range all {
		fmt.Fprintln(notes, note)
	}
	return err
}

// Create submits the job.
func (j Job) Create(ctx context.Context, c client.Client, out io.Writer) error {
	aw := j.appWrapper
	err := c.Create(ctx, aw)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s has an AppWrapper %s already: delete it, or choose another jobName", aw.Namespace, aw.Name)
	}
	if err != nil {
		return fmt.Errorf("cannot submit the job: %w", err)
	}
	fmt.Fprintf(out, "AppWrapper %s was submitted in namespace %s\n", aw.Name, aw.Namespace)
	return nil
}

// retryPause is the wait before an API server that did not answer is asked again.
const retryPause = 5 * time.Second

// Wait follows the job to its end.
func (j Job) Wait(ctx context.Context, c client.WithWatch, out io.Writer) error {
	return follow(ctx, c, j.appWrapper, out, retryPause)
}
