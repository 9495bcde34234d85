// SPDX-License-Identifier: Apache-2.0

package teamsfile

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Settings are what a user wants of a team. What is not set stays as it is.
type Settings struct {
	// Namespace, QueueName and Existing are only for a new team. Existing means that its namespace exists already.
	Namespace, QueueName string
	Existing             bool
	Cohort               *string
	Weight               *float64
	// StopPolicy is None, Hold or HoldAndDrain.
	StopPolicy    *string
	Quota         []Assignment
	Users, Groups Members
}

// Members come and go.
type Members struct{ Add, Remove []string }

// Assignment sets the quota of a resource in a flavor. Amounts that are empty stay as they are.
type Assignment struct {
	Flavor, Resource                      string
	Nominal, BorrowingLimit, LendingLimit string
}

// None is the amount of a quota or limit that is to be removed.
const None = "none"

// wording is how an assignment is written.
const wording = "write [FLAVOR:]RESOURCE=AMOUNT[,borrowingLimit=AMOUNT][,lendingLimit=AMOUNT], such as h100:nvidia.com/gpu=8,lendingLimit=4"

// ParseAssignment reads how a user writes a quota.
func ParseAssignment(text string) (Assignment, error) {
	wrong := fmt.Errorf("cannot read %q: %s", text, wording)
	name, value, _ := strings.Cut(text, "=")
	a := Assignment{Resource: name}
	if flavor, of, two := strings.Cut(name, ":"); two {
		a.Flavor, a.Resource = flavor, of
	}
	for _, part := range strings.Split(value, ",") {
		target, amount := a.part(part)
		if target == nil || *target != "" || amount == "" {
			return Assignment{}, wrong
		}
		if !isAmount(amount) {
			return Assignment{}, fmt.Errorf("cannot read %q: %q is not an amount: write a number, with a unit if it needs one, such as 8, 500m or 512Gi", text, amount)
		}
		*target = amount
	}
	if a.Resource == "" || a.Nominal == None && a.BorrowingLimit+a.LendingLimit != "" {
		return Assignment{}, wrong
	}
	return a, nil
}

// part returns what a part of an assignment sets, and to which amount.
func (a *Assignment) part(text string) (target *string, amount string) {
	key, amount, limited := strings.Cut(text, "=")
	switch {
	case !limited:
		return &a.Nominal, text
	case key == "borrowingLimit":
		return &a.BorrowingLimit, amount
	case key == "lendingLimit":
		return &a.LendingLimit, amount
	}
	return nil, ""
}

func isAmount(text string) bool {
	_, err := resource.ParseQuantity(text)
	return err == nil || text == None
}

// completed finds the flavors of assignments: a file with one flavor need not be told which.
func (t Teams) completed(all []Assignment) ([]Assignment, error) {
	var flavors []string
	for _, f := range t.Flavors {
		flavors = append(flavors, f.Name)
	}
	all = slices.Clone(all)
	for i := range all {
		a := &all[i]
		switch {
		case a.Flavor == "" && len(flavors) == 1:
			a.Flavor = flavors[0]
		case a.Flavor == "":
			return nil, fmt.Errorf("the file has %d flavors: say which one %s is for, such as %s:%s=…", len(flavors), a.Resource, flavors[0], a.Resource)
		case !slices.Contains(flavors, a.Flavor):
			return nil, UnknownError{What: "flavor", Name: a.Flavor, Known: flavors}
		}
		for _, b := range all[:i] {
			if a.Flavor == b.Flavor && a.Resource == b.Resource {
				return nil, fmt.Errorf("%s in flavor %s is set twice: write its amount and limits once, with commas", a.Resource, a.Flavor)
			}
		}
	}
	return all, nil
}

// differs reports whether an amount that a user wrote is another one than that in the file.
func differs(text string, now *Amount) bool {
	if text == "" || text == None {
		return text == None && now != nil
	}
	quantity, err := resource.ParseQuantity(text)
	return err != nil || now == nil || quantity.Cmp(now.Quantity) != 0
}
