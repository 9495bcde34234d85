// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/test/wording"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/why"
)

// train is an AppWrapper that waits for quota. What happens after each look at it, which count from 1, is in happens.
type train struct {
	client.WithWatch
	t       *testing.T
	looks   int
	happens map[int]func(train)
	// calls go wrong or not.
	calls interceptor.Funcs
}

func (a *train) inBlue() client.WithWatch {
	a.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, kueue.AddToScheme, v1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			a.t.Fatal(err)
		}
	}
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "train", UID: "u"}}
	aw.Status.Phase = v1beta2.AppWrapperSuspended
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "w", OwnerReferences: []metav1.OwnerReference{{Kind: "AppWrapper", Name: "train", UID: "u"}}}}
	w.Status.Conditions = waits("2")
	kind := func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }
	a.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(aw, w).WithIndex(&corev1.Event{}, "type", kind).Build()
	a.calls.List = func(ctx context.Context, inner client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		err := inner.List(ctx, list, options...)
		if _, last := list.(*corev1.EventList); last { // of the lists that make a look
			a.looks++
			if happen := a.happens[a.looks]; happen != nil {
				happen(*a)
			}
		}
		return err
	}
	if a.calls.Watch == nil {
		a.calls.Watch = tellingWhatIsThere
	}
	return interceptor.NewClient(a.WithWatch, a.calls)
}

// tellingWhatIsThere watches as API servers do: the first event is about what is there already.
func tellingWhatIsThere(ctx context.Context, inner client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	changes, err := inner.Watch(ctx, list, options...)
	if err != nil {
		return nil, err
	}
	events := make(chan watch.Event, 1)
	events <- watch.Event{Type: watch.Added}
	go func() {
		for e := range changes.ResultChan() {
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return watch.NewProxyWatcher(events), nil
}

func waits(cpu string) []metav1.Condition {
	return []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending",
		Message: "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor a, " + cpu + " more needed"}}
}

// isNow changes the phase and what Kueue says.
func isNow(phase v1beta2.AppWrapperPhase, kueueSays ...metav1.Condition) func(train) {
	return func(a train) {
		aw, w := &v1beta2.AppWrapper{}, &kueue.Workload{}
		for name, o := range map[string]client.Object{"train": aw, "w": w} {
			if err := a.Get(a.t.Context(), client.ObjectKey{Namespace: "blue", Name: name}, o); err != nil {
				a.t.Fatal(err)
			}
		}
		aw.Status.Phase, w.Status.Conditions = phase, kueueSays
		if err := errors.Join(a.Update(a.t.Context(), aw), a.Update(a.t.Context(), w)); err != nil {
			a.t.Fatal(err)
		}
	}
}

var (
	hasQuota = metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved"}
	// usual life of the AppWrapper. After the first look, only numbers change.
	usual = map[int]func(train){
		1: isNow(v1beta2.AppWrapperSuspended, waits("3")...),
		2: isNow(v1beta2.AppWrapperRunning, hasQuota),
		3: isNow(v1beta2.AppWrapperSucceeded, hasQuota),
	}
)

// watch returns the states and causes that are shown, and the errors that are told.
func (a *train) watch(ctx context.Context, most time.Duration) (shown []string, told []string, err error) {
	err = why.Watch(ctx, a.inBlue(), why.Target{Kind: "appwrapper", Namespace: "blue", Name: "train"}, why.Pace{Least: time.Millisecond, Most: most}, why.Screen{
		Show: func(e explain.Explanation, _ time.Time) error {
			said := strings.TrimPrefix(e.State, "AppWrapper train in namespace blue is ")
			for _, c := range e.Causes {
				said += " " + string(c.Code)
			}
			shown = append(shown, said)
			return nil
		},
		Unsure: func(err error) { told = append(told, err.Error()) },
	})
	return shown, told, err
}

var life = []string{"Suspended Quota", "Running", "Succeeded Succeeded"}

// A change of which no watch tells would be seen after an hour.
func TestEachChangeIsShownUntilTheEnd(t *testing.T) {
	a := train{t: t, happens: usual}
	shown, told, err := a.watch(t.Context(), time.Hour)
	if diff := cmp.Diff(life, shown); diff != "" || told != nil || err != nil {
		t.Errorf("%s%q, %v", diff, told, err)
	}
}

func TestWhoMayNotWatchSeesTheSame(t *testing.T) {
	a := train{t: t, happens: usual, calls: interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "", nil)
	}}}
	shown, told, err := a.watch(t.Context(), 2*time.Millisecond)
	if diff := cmp.Diff(life, shown); diff != "" || told != nil || err != nil {
		t.Errorf("%s%q, %v", diff, told, err)
	}
}

// A watch that ends is opened again.
func TestAWatchThatEndsIsOpenedAgain(t *testing.T) {
	opened := 0
	a := train{t: t, happens: usual, calls: interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		opened++
		ends := watch.NewFake()
		go ends.Error(&metav1.Status{Message: "too old"})
		return ends, nil
	}}}
	shown, _, err := a.watch(t.Context(), 200*time.Millisecond) // by then it is noticed that the watches have ended
	if diff := cmp.Diff(life, shown); diff != "" || err != nil || opened < 4 {
		t.Errorf("%s%d watches were opened, %v", diff, opened, err)
	}
}

func TestWhatEndsAWatch(t *testing.T) {
	broken := errors.New("the API server is away")
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "appwrappers"}, "train", nil)
	for name, row := range map[string]struct {
		fails map[int]error // by look
		shown []string
		told  []string
		err   string
	}{
		"an error at the beginning":  {fails: map[int]error{1: broken}, err: "cannot get appwrappers in namespace blue: the API server is away"},
		"a right that is missing":    {fails: map[int]error{1: denied}, err: "you may not get appwrappers in namespace blue: ask an administrator for a role with this right"},
		"a right that is taken away": {fails: map[int]error{2: denied}, shown: life[:1], err: "you may not get appwrappers in namespace blue: ask an administrator for a role with this right"},
		"a deletion":                 {fails: map[int]error{2: apierrors.NewNotFound(schema.GroupResource{Resource: "appwrappers"}, "train")}, shown: life[:1], err: "train was deleted in namespace blue"},
		"nothing but the end of the work, however often the cluster is away": {
			fails: map[int]error{2: broken, 3: broken}, shown: []string{life[0], "Succeeded Succeeded"}, told: []string{"cannot get appwrappers in namespace blue: the API server is away"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			a := train{t: t, happens: map[int]func(train){1: isNow(v1beta2.AppWrapperSucceeded, hasQuota)}}
			a.calls.Get = func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if _, is := o.(*v1beta2.AppWrapper); is {
					asked++
					if err := row.fails[asked]; err != nil {
						return err
					}
				}
				return inner.Get(ctx, key, o, options...)
			}
			shown, told, err := a.watch(t.Context(), 2*time.Millisecond)
			if diff := cmp.Diff(row.shown, shown) + cmp.Diff(row.told, told); diff != "" {
				t.Error(diff)
			}
			if row.err != "" {
				wording.OneSentence(t, "", err, row.err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnInterruptIsNoError(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	a := train{t: t, happens: map[int]func(train){2: func(train) { interrupt() }}}
	shown, told, err := a.watch(ctx, 2*time.Millisecond)
	if diff := cmp.Diff(life[:1], shown); diff != "" || told != nil || err != nil {
		t.Errorf("%s%q, %v", diff, told, err)
	}
}
