// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"errors"
	"fmt"
	"testing"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/mlbatch/mlbatch/test/fakecluster"
)

// helmIn returns Helm's storage in a namespace, or in all namespaces for "".
func helmIn(typed *fake.Clientset, namespace string) *storage.Storage {
	return storage.Init(driver.NewSecrets(typed.CoreV1().Secrets(namespace)))
}

func TestAReleaseElsewhereIsNotAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, chart, want string
	}{
		"there is none":                  {"", "", "<nil>"},
		"it is in another namespace":     {"queues", "mlbatch", "the platform is in namespace queues: use --namespace queues"},
		"a stranger's has the same name": {"queues", "football", "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			typed := fake.NewClientset()
			if c.namespace != "" {
				there := fakecluster.Revision(1, release.StatusDeployed, nil)
				there.Namespace, there.Chart.Metadata.Name = c.namespace, c.chart
				if err := helmIn(typed, c.namespace).Create(there); err != nil {
					t.Fatal(err)
				}
			}
			m := History{}
			m.Elsewhere, m.listError = Release{Name: "mlbatch", Namespace: DefaultNamespace}.lookElsewhere(helmIn(typed, ""))
			if got := fmt.Sprint(m.CheckNamespace("the platform", "--namespace")); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAReleaseThatIsHereMayBeElsewhereAsWell(t *testing.T) {
	m := History{Last: fakecluster.Revision(1, release.StatusDeployed, nil), Elsewhere: "tenants"}
	if err := m.CheckNamespace("the release teams", "--teams-namespace"); err != nil {
		t.Error(err)
	}
}

func TestWhoMayNotReadReleasesIsToldTheRight(t *testing.T) {
	typed := fake.NewClientset()
	typed.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
	})
	r := Release{Name: "mlbatch", Namespace: "queues"}
	want := func(where string, err error) {
		t.Helper()
		if err == nil || err.Error() != "you may not list secrets in "+where+" here: use the credentials of a cluster administrator (--kubeconfig, --context)" {
			t.Errorf("got %v", err)
		}
	}
	_, _, err := r.Revisions(helmIn(typed, "queues"))
	want("namespace queues", err)
	m := History{}
	_, m.listError = r.lookElsewhere(helmIn(typed, ""))
	want("all namespaces", m.CheckNamespace("the platform", "--namespace"))
}

func TestAReleaseOfTheSameNameStays(t *testing.T) {
	record := fakecluster.Revision(1, release.StatusDeployed, nil)
	record.Chart.Metadata.Name = "football"
	teams := Release{Name: "teams", Namespace: DefaultNamespace}
	if err := teams.CheckChart("teams", record); err == nil || err.Error() != "the release teams in namespace mlbatch-system has the chart football, which is not ours: choose another --namespace" {
		t.Errorf("it says %v", err)
	}
	record.Chart.Metadata.Name = "teams"
	if err := errors.Join(teams.CheckChart("teams", record), teams.CheckChart("teams", nil)); err != nil {
		t.Error(err)
	}
}
