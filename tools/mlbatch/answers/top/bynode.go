// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/controller/nodesigns"
	"github.com/mlbatch/mlbatch/tools/mlbatch/quota"
)

// Node is what a node has, and what pods use of it.
type Node struct {
	Name string `json:"name"`
	// Flavors are those whose work may run on the node.
	Flavors   []string `json:"flavors,omitempty"`
	Resources []Share  `json:"resources"`
}

// Share is what a node has of a resource.
type Share struct {
	Resource string `json:"resource"`
	// Total is what the node has, and Usable what pods can get of it.
	Total  resource.Quantity `json:"total"`
	Usable resource.Quantity `json:"usable"`
	// Used is what its pods request, and Free what is left; absent if the pods are not known.
	Used *resource.Quantity `json:"used,omitempty"`
	Free *resource.Quantity `json:"free,omitempty"`
	// Unusable is why not all is usable.
	Unusable string `json:"unusable,omitempty"`
}

func (o Objects) nodes() (all []Node) {
	used := quota.Used(o.Pods)
	for i := range o.Nodes {
		node := &o.Nodes[i]
		n := Node{Name: node.Name, Resources: []Share{}}
		for j := range o.Flavors {
			if nodesigns.Serves(node, &o.Flavors[j]) {
				n.Flavors = append(n.Flavors, o.Flavors[j].Name)
			}
		}
		stocks := o.Signs.Stocks(node)
		for _, name := range slices.Sorted(maps.Keys(stocks)) {
			n.Resources = append(n.Resources, share(name, stocks[name], o.Pods != nil, used[node.Name][name]))
		}
		slices.Sort(n.Flavors)
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func share(name corev1.ResourceName, stock nodesigns.Stock, known bool, used resource.Quantity) Share {
	s := Share{Resource: string(name), Total: stock.Total, Usable: stock.Usable, Unusable: string(stock.Cause)}
	if !known {
		return s
	}
	free := quota.Free(stock.Usable, used)
	s.Used, s.Free = &used, &free
	return s
}

// minor resources are of interest to few, such as those that no quota is about.
func (s Share) minor() bool {
	for _, prefix := range []string{"pods", "ephemeral-storage", "hugepages-"} {
		if strings.HasPrefix(s.Resource, prefix) {
			return true
		}
	}
	return s.Total.IsZero()
}

func (o Overview) nodes(wide bool) [][]string {
	rows := [][]string{{"NODE", "FLAVORS", "RESOURCE", "USE", "USED", "USABLE", "TOTAL", "FREE", "UNUSABLE"}}
	for _, n := range o.Nodes {
		for _, s := range n.Resources {
			if s.minor() && !wide {
				continue
			}
			use := ""
			if s.Used != nil {
				use = bar(*s.Used, s.Total)
			}
			amount := of(s.Resource)
			rows = append(rows, []string{n.Name, strings.Join(n.Flavors, ","), s.Resource, use, amount(s.Used), amount(&s.Usable), amount(&s.Total), amount(s.Free), s.Unusable})
		}
	}
	return rows
}
