// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAmountsAreWrittenForPeople(t *testing.T) {
	for _, row := range []struct {
		name         corev1.ResourceName
		amount, want string
	}{
		{"memory", "64Gi", "64 GiB"}, {"memory", "24581692Ki", "23.4 GiB"}, {"memory", "5121Gi", "5,121 GiB"}, {"memory", "512M", "488.2 MiB"},
		{"memory", "0", "0"}, {"ephemeral-storage", "1Ti", "1,024 GiB"}, {"hugepages-2Mi", "4Mi", "4 MiB"}, {"example.com/disk", "3Gi", "3 GiB"},
		{"pods", "1k", "1,000"}, {"pods", "1234567", "1,234,567"}, {"cpu", "35500m", "35.5"}, {"cpu", "100m", "0.1"}, {"nvidia.com/gpu", "8", "8"}, {"cpu", "-1500m", "-1.5"},
	} {
		if got := Amount(row.name, resource.MustParse(row.amount)); got != row.want {
			t.Errorf("%s %s is written %s, and not %s", row.amount, row.name, got, row.want)
		}
	}
}
