// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/explain"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
	"github.com/mlbatch/mlbatch/tools/mlbatch/submit"
)

// Members are the AppWrappers of an array in the order of their numbers, or none if there is no such array.
func Members(ctx context.Context, c client.Reader, namespace, array string) (all []explain.Objects, err error) {
	found, err := clusterstate.List[v1beta2.AppWrapper](ctx, c, &v1beta2.AppWrapperList{}, client.InNamespace(namespace), client.MatchingLabels{submit.ArrayLabel: array})
	if err != nil {
		return nil, clusterstate.Failed(err, clusterstate.Request{Verb: "list", Resource: "appwrappers", Namespace: namespace})
	}
	found = slices.DeleteFunc(found, func(aw v1beta2.AppWrapper) bool { return aw.Labels[submit.ArrayLabel] != array }) // nothing else is deleted, whatever was listed
	slices.SortFunc(found, func(a, b v1beta2.AppWrapper) int { return byNumber(a.Name, b.Name) })
	for i := range found {
		all = append(all, explain.Objects{AppWrapper: &found[i], Absent: map[string]string{}})
	}
	return all, nil
}

// byNumber orders names that end in numbers.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// In are the pieces of work that are in some stages.
func In(all []explain.Objects, stages []string) []explain.Objects {
	return slices.DeleteFunc(slices.Clone(all), func(o explain.Objects) bool { return !slices.Contains(stages, summary(o).Stage) })
}

// Array is the work of an array in the order of its numbers.
func Array(ctx context.Context, c client.Client, namespace, array string, now time.Time) (Overview, error) {
	all, err := List(ctx, c, namespace, now)
	if err != nil {
		return Overview{}, err
	}
	all.Items = slices.DeleteFunc(all.Items, func(i Item) bool { return i.labels[submit.ArrayLabel] != array })
	slices.SortFunc(all.Items, func(a, b Item) int { return byNumber(a.Name, b.Name) })
	return all, nil
}

// folded has one item for each array, where its newest number was.
func folded(items []Item) (all []Item) {
	type array struct{ namespace, name string }
	members := map[array][]Item{}
	of := func(i Item) array { return array{i.Namespace, i.labels[submit.ArrayLabel]} }
	for _, i := range items {
		members[of(i)] = append(members[of(i)], i)
	}
	for _, i := range items {
		switch those := members[of(i)]; {
		case of(i).name == "":
			all = append(all, i)
		case those != nil:
			all = append(all, sumOf(of(i).name, those))
			members[of(i)] = nil
		}
	}
	return all
}

// sumOf is an array as one item: its numbers are counted by their stages.
func sumOf(name string, members []Item) Item {
	sum := members[0]
	sum.Name, sum.GPUs = fmt.Sprintf("%s[%d]", name, len(members)), nil
	count := map[string]int{}
	for _, m := range members {
		count[m.Stage]++
		sum.Reason = cmp.Or(sum.Reason, m.Reason)
		if m.GPUs != nil {
			gpus := *m.GPUs
			if sum.GPUs != nil {
				gpus += *sum.GPUs
			}
			sum.GPUs = &gpus
		}
	}
	var stages []string
	for _, stage := range Stages() {
		if count[stage] > 0 {
			stages = append(stages, fmt.Sprintf("%d %s", count[stage], stage))
		}
	}
	sum.Stage = strings.Join(stages, ", ")
	return sum
}
