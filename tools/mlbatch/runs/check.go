// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// Unfit says why Runs cannot be planned, or can never run.
type Unfit struct{ error }

// Check plans all Runs. What the files lack is looked up on the cluster. It returns an Unfit if one of
// the Runs would not run. There is no plan if the user may not read what it needs.
func (m Manifests) Check(ctx context.Context, c client.Client) (plans []Plan, notes []string, err error) {
	complete, err := m.completed(ctx, c)
	if apierrors.IsForbidden(err) {
		return nil, append(m.Notes, fmt.Sprintf("skipped the checks: %v (an administrator can bind the role mlbatch-view-queues)", err)), nil
	}
	if err != nil {
		return nil, m.Notes, err
	}
	plans, notes, err = complete.plan()
	problems := []error{err}
	for _, plan := range plans {
		found, err := plan.check(ctx, c)
		for _, note := range found {
			notes = append(notes, fmt.Sprintf("Run %s: %s", plan.name(), note))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %s: %w", v1alpha1.RunKind, plan.name(), printing.OneLineError(err)))
		}
	}
	if err := printing.JoinErrors(problems); err != nil {
		return plans, notes, Unfit{err}
	}
	return plans, notes, nil
}

// missingKindAdvice says what the author of an Application can do if the cluster does not serve a kind.
var missingKindAdvice = map[string]string{
	"JobSet":     "ask an administrator to enable jobset, or set torch.backend to PyTorchJob",
	"PyTorchJob": "ask an administrator to enable training-operator, or set torch.backend to JobSet",
	"RayJob":     "ask an administrator to enable kuberay-operator",
	"RayCluster": "ask an administrator to enable kuberay-operator",
}

// defaultQueue is where AppWrappers without a queue go, unless an administrator changes it.
const defaultQueue = "default-queue"

func (p Plan) check(ctx context.Context, c client.Client) (notes []string, err error) {
	aw := p.AppWrapper.DeepCopy()
	if aw.Labels[v1beta2.QueueNameLabel] == "" {
		// Which queue the cluster would choose cannot be read.
		if c.Get(ctx, client.ObjectKey{Namespace: aw.Namespace, Name: defaultQueue}, &kueue.LocalQueue{}) == nil {
			aw.Labels[v1beta2.QueueNameLabel] = defaultQueue
		}
	}
	notes, err = submit.Check(ctx, c, aw, missingKindAdvice)
	if err != nil {
		return notes, err
	}
	missing, err := missing(ctx, c, aw)
	return append(notes, missing...), err
}

// completed returns the manifests with the Applications, DataSets and sizes of the cluster. If an
// object is in both, the one in the files counts.
func (m Manifests) completed(ctx context.Context, c client.Client) (Manifests, error) {
	sizes, err := clusterstate.List[v1alpha1.RunSizeConfiguration](ctx, c, &v1alpha1.RunSizeConfigurationList{})
	if err != nil {
		return m, failed(err, "cannot list the RunSizeConfigurations")
	}
	for _, size := range sizes {
		if !slices.ContainsFunc(m.Sizes, func(own v1alpha1.RunSizeConfiguration) bool { return own.Name == size.Name }) {
			m.Sizes = append(m.Sizes, size)
		}
	}
	looked := map[string]bool{}
	for _, run := range m.Runs {
		if err := m.addApplications(ctx, c, run); err != nil {
			return m, err
		}
		if looked[run.Namespace] {
			continue
		}
		looked[run.Namespace] = true
		if err := m.addDataSets(ctx, c, run.Namespace); err != nil {
			return m, err
		}
	}
	err = m.groupAs(c.RESTMapper())
	return m, err
}

// groupAs lets gangs be planned as the controller of the cluster plans them. The chart refuses one that
// makes PodGroups where there is no scheduler of them.
func (m *Manifests) groupAs(mapper meta.RESTMapper) error {
	group := schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "PodGroup"}
	_, err := mapper.RESTMapping(group, "v1alpha1")
	if m.ungrouped = meta.IsNoMatchError(err); m.ungrouped || err == nil {
		return nil
	}
	return failed(err, "cannot ask the cluster whether it serves %s", group.Kind)
}

// addApplications adds the Application of a Run and, if that is a workflow, those of its steps.
func (m *Manifests) addApplications(ctx context.Context, c client.Reader, run v1alpha1.Run) error {
	namespace := runplan.ApplicationNamespace(&run)
	if err := m.addApplication(ctx, c, namespace, run.Spec.Application.Name); err != nil {
		return err
	}
	app := m.input(run).Application
	if app == nil {
		return nil
	}
	for _, name := range runplan.ApplicationsOf(app) {
		if err := m.addApplication(ctx, c, namespace, name); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifests) addApplication(ctx context.Context, c client.Reader, namespace, name string) error {
	is := func(own v1alpha1.Application) bool { return own.Namespace == namespace && own.Name == name }
	if slices.ContainsFunc(m.Applications, is) {
		return nil
	}
	var app v1alpha1.Application
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &app)
	if apierrors.IsNotFound(err) && !notServed(err) {
		return nil // the plan says so
	}
	if err != nil {
		return failed(err, "cannot read Application %s", name)
	}
	m.Applications = append(m.Applications, app)
	return nil
}

func (m *Manifests) addDataSets(ctx context.Context, c client.Reader, namespace string) error {
	all, err := clusterstate.List[v1alpha1.DataSet](ctx, c, &v1alpha1.DataSetList{}, client.InNamespace(namespace))
	if err != nil {
		return failed(err, "cannot list the DataSets of namespace %s", namespace)
	}
	for _, dataSet := range all {
		isSame := func(own v1alpha1.DataSet) bool { return own.Namespace == namespace && own.Name == dataSet.Name }
		if !slices.ContainsFunc(m.DataSets, isSame) {
			m.DataSets = append(m.DataSets, dataSet)
		}
	}
	return nil
}
