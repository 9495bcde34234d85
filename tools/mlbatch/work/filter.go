// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"slices"
	"strings"
	"time"

	matching "k8s.io/apimachinery/pkg/labels"

	"github.com/mlbatch/mlbatch/controller/admissionrules"
	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// Filter says which work is wanted. The zero Filter wants all.
type Filter struct {
	// User is a user's name.
	User string
	// Stages are those that are wanted, or none if all are.
	Stages []string
	Labels matching.Selector
	// Ended, if it is not zero, is how long ago work may have ended.
	Ended time.Duration
}

// ParseStages reads the names of stages in any case.
func ParseStages(names []string) (found []string, err error) {
	for _, name := range names {
		i := slices.IndexFunc(Stages(), func(stage string) bool { return strings.EqualFold(stage, name) })
		if i < 0 {
			return nil, fmt.Errorf("there is no state %s: use %s", name, strings.Join(Stages(), ", "))
		}
		found = append(found, Stages()[i])
	}
	return found, nil
}

// Only returns the work that is wanted, and how much ended too long ago.
func (o Overview) Only(f Filter, now time.Time) (wanted Overview, past int) {
	wanted = Overview{Items: []Item{}, Unknown: o.Unknown}
	for _, i := range o.Items {
		switch {
		case !f.wants(i):
		case f.Ended != 0 && i.over() && now.Sub(i.Since.Time) > f.Ended:
			past++
		default:
			wanted.Items = append(wanted.Items, i)
		}
	}
	return wanted, past
}

func (f Filter) wants(i Item) bool {
	return (f.User == "" || i.User == admissionrules.UserLabelValue(f.User)) &&
		(len(f.Stages) == 0 || slices.Contains(f.Stages, i.Stage)) &&
		(f.Labels == nil || f.Labels.Matches(matching.Set(i.labels)))
}

// Ascribed is the work without bare jobs of which nothing says whose they are, and how many these are.
func (o Overview) Ascribed() (ascribed Overview, left int) {
	ascribed = Overview{Items: []Item{}, Unknown: o.Unknown}
	for _, i := range o.Items {
		if i.User == "" && i.Kind != v1beta2.AppWrapperKind && i.Kind != v1alpha1.RunKind {
			left++
			continue
		}
		ascribed.Items = append(ascribed.Items, i)
	}
	return ascribed, left
}

// NotOf is work that is not known to be a user's, or nil.
func (o Overview) NotOf(user string) *Item {
	for _, i := range o.Items {
		if i.User == "" || i.User != admissionrules.UserLabelValue(user) {
			return &i
		}
	}
	return nil
}

// over reports whether work has ended.
func (i Item) over() bool {
	return slices.Contains([]string{Succeeded, Failed, Cancelled, Ended}, i.Stage)
}
