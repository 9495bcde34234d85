// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"path"
	"strconv"
	"strings"
)

// ProcessName is what a process of a simulated cluster is called in a report. Most operators call
// their program manager, so those in pods are called by their Deployment, which is in the name of the
// pod's host.
func ProcessName(exe, argv0, environ string) string {
	if !strings.Contains(exe, "/node/pods/") {
		if path.Base(argv0) == "server" {
			return "etcd" // whose module calls it so
		}
		return path.Base(argv0)
	}
	_, host, _ := strings.Cut("\x00"+environ, "\x00HOSTNAME=")
	host, _, _ = strings.Cut(host, "\x00")
	for range 2 { // hashes of the ReplicaSet and of the pod
		if i := strings.LastIndexByte(host, '-'); i > 0 {
			host = host[:i]
		}
	}
	return host
}

// MostMemory is the most resident memory of a process, in MiB, by what Linux says in /proc/PID/status.
func MostMemory(status string) float64 {
	_, most, _ := strings.Cut(status, "\nVmHWM:")
	fields := strings.Fields(most)
	if len(fields) == 0 {
		return 0 // it has ended
	}
	kib, _ := strconv.ParseFloat(fields[0], 64)
	return kib / 1024
}
