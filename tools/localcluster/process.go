// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// keeperOf returns the keeper recorded in a cluster's folder and whether that
// very process still lives.
func keeperOf(dir string) (plan.Keeper, bool) {
	var k plan.Keeper
	if plan.Read(dir, plan.KeeperFile, &k) != nil {
		return k, false
	}
	start, err := startTime(k.PID)
	return k, err == nil && start == k.StartTime
}

// startTime reads field 22 of /proc/PID/stat. The command name in field 2 may
// hold spaces, so fields are counted from its closing parenthesis. A zombie
// has ended as far as we care.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 || fields[0] == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[19], nil
}
