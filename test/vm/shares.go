// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// A share is a folder of this machine that the virtual machine can access.
type share struct {
	tag string
	// here and inside are the paths of the folder.
	here, inside string
	// writable shares can be written from inside. The others are read-only.
	writable bool
}

// Mount points in the virtual machine.
const (
	insideCheckout = "/root/mlbatch"
	insideCarried  = "/mnt/carried"
	insideGo       = "/usr/local/go"
	insideModules  = "/root/go/pkg/mod"
	insideCache    = "/root/.cache/mlbatch"
	// Go writes to its build cache, so the machine has an overlay of ours.
	insideCompiled = "/mnt/go-build"
	overCompiled   = "/root/.cache/go-build"
	changed        = "/var/go-build/changed"
	working        = "/var/go-build/working"
)

// fstab mounts the shares. The machine caches them without revalidation, because nothing
// changes them while it runs.
func fstab(shares []share) string {
	lines := []string{"/dev/vda / ext4 defaults 0 1"}
	for _, s := range shares {
		access := "ro,cache=loose"
		if s.writable {
			access = "rw"
		}
		lines = append(lines, fmt.Sprintf("%s %s 9p trans=virtio,version=9p2000.L,msize=512000,%s 0 0", s.tag, s.inside, access))
	}
	lines = append(lines, fmt.Sprintf("overlay %s overlay lowerdir=%s,upperdir=%s,workdir=%s,x-systemd.requires-mounts-for=%s 0 0",
		overCompiled, insideCompiled, changed, working, insideCompiled))
	return strings.Join(lines, "\n") + "\n"
}

const serviceName = "mlbatch.service"

// service runs the steps after boot, as a service of a Debian user would, and then shuts the
// machine down.
func service(shares []share) string {
	mounts := []string{overCompiled}
	for _, s := range shares {
		mounts = append(mounts, s.inside)
	}
	return strings.Join([]string{
		"[Unit]",
		"Description=The local cluster of MLBatch",
		"RequiresMountsFor=" + strings.Join(mounts, " "),
		"SuccessAction=poweroff",
		"FailureAction=poweroff",
		"[Service]",
		"Type=oneshot",
		"ExecStart=" + insideCarried + "/vm " + insideCommand,
		"StandardOutput=file:/dev/ttyS1", "StandardError=journal+console",
		"WorkingDirectory=" + insideCheckout,
		"Environment=HOME=/root GOPROXY=off PATH=" + insideGo + "/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}, "\n") + "\n"
}
