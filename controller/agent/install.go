// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// installCommand brings the agent into the pod of a user's image.
func installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install FOLDER",
		Short: "Copy this program into a folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := install(filepath.Join(args[0], "agent")); err != nil {
				return fmt.Errorf("cannot copy the agent: %w", err)
			}
			return nil
		},
	}
}

// install replaces what an init container that was killed has left.
func install(target string) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(own)
	if err != nil {
		return err
	}
	defer from.Close()
	part := target + ".part"
	to, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	return os.Rename(part, target)
}
