// SPDX-License-Identifier: Apache-2.0

// Package fetch answers how code and data come into a folder of a pod. It talks to servers that
// users name, and never to the cluster.
package fetch

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// executable lets everybody do everything: the program runs as any user.
const executable os.FileMode = 0o777

// Files copies the files of a mounted ConfigMap, and not the folders that the kubelet has beside
// them. Their names begin with two dots.
func Files(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("cannot list the files: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		if err := copyFile(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("cannot read a file: %w", err)
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, executable)
	if err != nil {
		return fmt.Errorf("cannot write a file: %w", err)
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return fmt.Errorf("cannot write %s: %w", to, err)
	}
	if err := target.Close(); err != nil {
		return fmt.Errorf("cannot write %s: %w", to, err)
	}
	return nil
}
