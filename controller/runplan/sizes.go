// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// defaultSize is the size of Runs for which nobody names one.
const defaultSize = "sm"

// Size is how many workers a Run has, and what each of them gets.
type Size struct {
	Name         string
	Workers      int32
	PerWorker    corev1.ResourceList
	NodeSelector map[string]string
	// GPUs of each worker.
	GPUs int64
	// withheld is true if the size has GPUs that the Run does not get, because supportsGpu is not
	// true on both.
	withheld bool
}

// String says what came out, for people.
func (s Size) String() string {
	var amounts []string
	for _, name := range resourceNames(s.PerWorker) {
		amount := s.PerWorker[name]
		amounts = append(amounts, fmt.Sprintf("%s %s", amount.String(), name))
	}
	workers := fmt.Sprintf("%d workers", s.Workers)
	switch s.Workers {
	case 0:
		workers = "no workers, and a head"
	case 1:
		workers = "1 worker"
	}
	text := fmt.Sprintf("%s of %s", workers, cmp.Or(strings.Join(amounts, ", "), "nothing"))
	if s.withheld {
		text += "; no GPUs, because supportsGpu is not true on both"
	}
	return text
}

// resourceNames has cpu and memory first.
func resourceNames(resources corev1.ResourceList) []corev1.ResourceName {
	first := []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU} // by rank, from below
	return slices.SortedFunc(maps.Keys(resources), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(slices.Index(first, b), slices.Index(first, a)), cmp.Compare(a, b))
	})
}

// sizeOf resolves the size of a Run. The name is empty if there is no such size.
func sizeOf(in Input) (Size, []Problem) {
	name := cmp.Or(in.Run.Spec.Size, in.Application.Spec.Size, defaultSize)
	configured, unknown := configuredSize(in.Sizes, name)
	if len(unknown) > 0 {
		return Size{}, unknown
	}
	size := Size{Name: name, Workers: configured.Workers, NodeSelector: configured.NodeSelector}
	if workers := in.Run.Spec.Workers; workers != nil {
		size.Workers = *workers
	}
	gpu := corev1.ResourceName(in.Settings.GPUResourceName)
	if _, twice := configured.Resources[gpu]; twice {
		return size, []Problem{impossible("size %s has %s among its resources: an administrator sets gpu instead", name, gpu)}
	}
	all := corev1.ResourceList{corev1.ResourceCPU: configured.CPU.Quantity, corev1.ResourceMemory: configured.Memory.Quantity}
	add(all, configured.Resources)
	if _, own := in.Run.Spec.Resources[gpu]; !own && configured.GPU > 0 {
		size.withheld = !in.Run.Spec.SupportsGPU || !in.Application.Spec.SupportsGPU
		if !size.withheld {
			all[gpu] = *resource.NewQuantity(int64(configured.GPU), resource.DecimalSI)
		}
	}
	add(all, in.Run.Spec.Resources)
	all = withoutNone(all)
	if problems := tooLarge(all); len(problems) > 0 {
		return size, problems
	}
	gpus := all[gpu]
	size.PerWorker, size.GPUs = all, gpus.Value()
	return size, fractions(all)
}

// withoutNone drops what is 0: a queue that does not know a resource never admits a Run that
// requests it, even none of it.
func withoutNone(all corev1.ResourceList) corev1.ResourceList {
	maps.DeleteFunc(all, func(_ corev1.ResourceName, amount resource.Quantity) bool { return amount.IsZero() })
	return all
}

func add(all corev1.ResourceList, more v1alpha1.Resources) {
	for name, amount := range more {
		all[name] = amount.Quantity
	}
}

// mostDigits are those of the largest amount, 1e15.
const mostDigits = 15

// tooLarge are problems with amounts that were stored before the schema had bounds. The value of
// 1e2000000000 has two billion digits.
func tooLarge(resources corev1.ResourceList) []Problem {
	most := resource.NewScaledQuantity(1, mostDigits)
	var problems []Problem
	for _, name := range resourceNames(resources) {
		amount := resources[name]
		// Also a comparison writes all digits out.
		if amount.AsDec().Scale() < -mostDigits || amount.Cmp(*most) > 0 {
			problems = append(problems, impossible("there is no such amount of %s: it may be at most 1e%d", name, mostDigits))
		}
	}
	return problems
}

// fractions are problems with resources of which there are only whole ones.
func fractions(resources corev1.ResourceList) []Problem {
	var problems []Problem
	for _, name := range resourceNames(resources) {
		whole := strings.Contains(string(name), "/") || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		if amount := resources[name]; whole && !isWhole(amount) {
			problems = append(problems, impossible("%s cannot be %s: it must be a whole number", name, amount.String()))
		}
	}
	return problems
}

func isWhole(amount resource.Quantity) bool {
	return amount.Cmp(*resource.NewQuantity(amount.Value(), amount.Format)) == 0
}

// configuredSize is the size of that name in the first configuration that has it.
func configuredSize(configurations []v1alpha1.RunSizeConfiguration, name string) (v1alpha1.Size, []Problem) {
	known := map[string]bool{}
	for _, c := range slices.SortedFunc(slices.Values(configurations), byPriority) {
		if size, has := c.Spec.Config[name]; has {
			return size, nil
		}
		for other := range c.Spec.Config {
			known[other] = true
		}
	}
	if len(known) == 0 {
		return v1alpha1.Size{}, []Problem{problem(SizeUnknown, "there is no size %s, nor any other: an administrator adds a RunSizeConfiguration", name)}
	}
	return v1alpha1.Size{}, []Problem{problem(SizeUnknown, "there is no size %s; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))}
}

// absentPriority is that of a configuration without one.
const absentPriority = 1

func byPriority(a, b v1alpha1.RunSizeConfiguration) int {
	priority := func(c v1alpha1.RunSizeConfiguration) int32 {
		if c.Spec.Priority == nil {
			return absentPriority
		}
		return *c.Spec.Priority
	}
	return cmp.Or(cmp.Compare(priority(a), priority(b)), strings.Compare(a.Name, b.Name))
}

// DefaultSizes are the sizes of a platform whose administrator changed nothing.
func DefaultSizes() v1alpha1.RunSizeConfiguration {
	var all v1alpha1.RunSizeConfiguration
	all.Name = "default"
	priority := int32(100)
	size := func(workers int32, cpu, memory string, gpu int32) v1alpha1.Size {
		return v1alpha1.Size{Workers: workers, CPU: v1alpha1.MustParseAmount(cpu), Memory: v1alpha1.MustParseAmount(memory), GPU: gpu}
	}
	all.Spec = v1alpha1.RunSizeConfigurationSpec{Priority: &priority, Config: map[string]v1alpha1.Size{
		"xxs": size(1, "500m", "1.5Gi", 0),
		"xs":  size(1, "1", "4Gi", 1),
		"sm":  size(2, "1", "8Gi", 1),
		"md":  size(4, "2", "16Gi", 1),
		"lg":  size(8, "4", "32Gi", 1),
		"xl":  size(20, "4", "48Gi", 1),
		"xxl": size(40, "8", "64Gi", 1),
	}}
	return all
}
