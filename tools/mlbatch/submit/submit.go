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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	generator "github.com/mlbatch/mlbatch/tools/pytorchjob-generator"
)

// Job is a rendered training job.
type Job struct {
	// Manifest is the rendered YAML: the same as helm template prints, and what the job carries.
	Manifest   string
	version    string
	settings   map[string]any
	parts      parts
	appWrapper *v1beta2.AppWrapper
}

// parts are what the generator does not render.
type parts struct {
	files  []file
	array  *Array
	recipe *recipe
}

// into adds the parts to a rendered job, and returns its manifest.
func (p parts) into(aw *v1beta2.AppWrapper) (string, error) {
	switch {
	case p.array == nil:
	case p.array.apart():
		metav1.SetMetaDataLabel(&aw.ObjectMeta, ArrayLabel, p.array.Of)
	default:
		if err := p.array.job(aw); err != nil {
			return "", err
		}
	}
	return withFiles(aw, p.files)
}

// New renders a job with the given version of the generator.
func New(version string, settings map[string]any) (Job, error) {
	return render(version, settings, parts{recipe: &recipe{Settings: maps.Clone(settings)}})
}

func render(version string, settings map[string]any, more parts) (Job, error) {
	manifest, err := generator.Render(version, settings)
	if err != nil {
		return Job{}, err
	}
	aw, err := generator.AppWrapper(manifest)
	if err == nil && len(more.files) > 0 {
		manifest, err = more.into(aw)
	}
	return Job{Manifest: manifest, version: version, settings: settings, parts: more, appWrapper: aw}, err
}

// In sets the namespace of the job and of its manifest: the one in the settings, or else
// the one given with --namespace, or else the one of the kubeconfig's current context. It
// returns an error if the first two differ, or if there is none.
func (j *Job) In(flag, current string) error {
	own := j.appWrapper.Namespace
	if own != "" && flag != "" && own != flag {
		return fmt.Errorf("the settings have namespace %s, but --namespace is %s: remove one of them", own, flag)
	}
	for _, namespace := range []string{own, flag, current} {
		if namespace != "" {
			settings := maps.Clone(j.settings)
			settings["namespace"] = namespace
			rendered, err := render(j.version, settings, j.parts)
			*j = rendered
			return err
		}
	}
	return errors.New("set the namespace of your team with --namespace")
}

// Name is the name of the job and of its AppWrapper.
func (j Job) Name() string { return j.appWrapper.Name }

// AppWrapper is that of the job. Create makes it the stored one.
func (j Job) AppWrapper() *v1beta2.AppWrapper { return j.appWrapper }

// Scheme returns a scheme with all kinds that this package reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta2.AddToScheme(scheme), kueue.AddToScheme(scheme))
	return scheme, err
}

// Check returns an error if the job can never run: ErrNeverAdmitted if the reason is its
// queue. It writes a line to notes for each check that it skipped, because the user may
// not read what it needs.
func (j Job) Check(ctx context.Context, c client.Client, notes io.Writer) error {
	all, err := Check(ctx, c, j.appWrapper, missingKindAdvice)
	for _, note := range all {
		fmt.Fprintln(notes, note)
	}
	return err
}

// Create creates the job's AppWrapper, and reports that to out.
func (j Job) Create(ctx context.Context, c client.Client, out io.Writer) error {
	aw := j.appWrapper
	if err := j.parts.recipe.keep(aw); err != nil {
		return fmt.Errorf("cannot write down the settings: %w", err)
	}
	err := c.Create(ctx, aw)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s already has an AppWrapper %s: delete it, or choose another jobName", aw.Namespace, aw.Name)
	}
	if err != nil {
		return fmt.Errorf("cannot submit the job: %w", err)
	}
	fmt.Fprintf(out, "AppWrapper %s was submitted in namespace %s\n", aw.Name, aw.Namespace)
	return nil
}

// retryPause is the pause before Wait retries if the API server does not answer.
const retryPause = 5 * time.Second

// Wait prints the job's progress until it ends. It returns an error unless the job succeeds.
func (j Job) Wait(ctx context.Context, c client.WithWatch, out io.Writer) error {
	return Follow(ctx, c, j.appWrapper, out)
}

// Follow prints the progress of an AppWrapper until it ends. It returns an error unless it succeeds.
func Follow(ctx context.Context, c client.WithWatch, aw *v1beta2.AppWrapper, out io.Writer) error {
	return follow(ctx, c, aw, out, retryPause)
}
