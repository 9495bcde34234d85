// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// Machine describes a machine by what Linux says in /proc/cpuinfo, /proc/meminfo and
// /proc/sys/kernel/osrelease.
func Machine(cpuinfo, meminfo, release string) string {
	cores, model, memory := 0, "", "unknown memory"
	for lines := bufio.NewScanner(strings.NewReader(cpuinfo)); lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) {
		case "processor":
			cores++
		case "model name":
			model = " of " + strings.TrimSpace(value)
		}
	}
	for lines := bufio.NewScanner(strings.NewReader(meminfo)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		if kib, err := strconv.ParseFloat(fields[1], 64); err == nil {
			memory = fmt.Sprintf("%.0f GiB", kib/(1<<20))
		}
	}
	count := fmt.Sprintf("%d cores", cores)
	if cores == 1 {
		count = "1 core"
	}
	return fmt.Sprintf("%s%s, %s, Linux %s", count, model, memory, strings.TrimSpace(release))
}
