// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// machine is a virtual machine that is about to start.
type machine struct {
	disk   disk
	shares []share
	// console is the file with the output of its first serial port.
	console     string
	accelerated bool
}

// arguments returns the arguments of QEMU. There is no network.
//
// An emulated processor is slow, even more so on a busy machine. Its clock therefore counts
// instructions, one per nanosecond, and stops while the machine gets no CPU time, so that no
// timeout of the cluster expires early. This supports only one processor.
func (m machine) arguments() []string {
	args := []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none", "-m", "6144",
		"-kernel", m.disk.kernel, "-initrd", m.disk.initrd, "-append", "root=/dev/vda rw console=ttyS0",
		"-drive", "file=" + m.disk.image + ",if=virtio,format=raw,cache=unsafe",
		"-serial", "file:" + m.console, "-serial", "stdio",
	}
	if m.accelerated {
		args = append(args, "-accel", "kvm", "-cpu", "host", "-smp", "2")
	} else {
		args = append(args, "-accel", "tcg", "-cpu", "max", "-smp", "1", "-icount", "shift=0")
	}
	for _, s := range m.shares {
		access := "readonly=on"
		if s.writable {
			access = "readonly=off"
		}
		args = append(args, "-virtfs", fmt.Sprintf("local,path=%s,mount_tag=%s,security_model=none,multidevs=remap,%s", s.here, s.tag, access))
	}
	return args
}

// processor describes the processor of the machine.
func (m machine) processor() string {
	if m.accelerated {
		return "2 processors by KVM"
	}
	return "1 processor emulated by QEMU"
}

// run starts the machine and follows its steps. It ends the process when they are done, when
// one fails, or at the timeout.
func (m machine) run(ctx context.Context, timeout time.Duration, out io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	qemu := exec.CommandContext(limited, qemuProgram, m.arguments()...)
	reports, err := qemu.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cannot start the virtual machine: %w", err)
	}
	var said strings.Builder
	qemu.Stderr = &said
	runtime.LockOSThread() // the machine must end with this process; the kernel watches the thread
	defer runtime.UnlockOSThread()
	qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := qemu.Start(); err != nil {
		return fmt.Errorf("cannot start the virtual machine: %w", err)
	}
	failed := follow(reports, out, time.Now)
	cancel()
	_ = qemu.Wait() // its exit code says nothing more
	switch {
	case failed == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the virtual machine was not done after %s; its console is in %s", timeout, m.console)
	}
	return fmt.Errorf("%w\n%sthe console is in %s", failed, said.String(), m.console)
}

const qemuProgram = "qemu-system-x86_64"

// accelerated reports whether QEMU may use KVM. A hypervisor may offer /dev/kvm without support
// by the processor; stock kernels do not boot there.
func accelerated(cpuinfo string, canOpen func(string) error) bool {
	flags := strings.Fields(cpuinfo)
	capable := slices.Contains(flags, "vmx") || slices.Contains(flags, "svm")
	return capable && canOpen("/dev/kvm") == nil
}

func canOpen(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
