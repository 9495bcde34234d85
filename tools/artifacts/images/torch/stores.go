// SPDX-License-Identifier: Apache-2.0

package torch

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// distributed is the part of PyTorch with which processes find each other.
const distributed = "usr/lib/python3/dist-packages/torch/distributed"

// storeCall matches a call of TCPStore in several lines, which may have calls as arguments.
var storeCall = regexp.MustCompile(`(TCPStore\([^()]*(?:\([^()]*\)[^()]*)*,)(\s*\))`)

// mendStores lets processes find each other in PyTorch 2.6 of Debian 13. By default, its TCPStore
// uses libuv, without which Debian builds it. PyTorch 1.13 does not know the argument.
func mendStores(root string) error {
	known, err := os.ReadFile(filepath.Join(root, distributed, "rendezvous.py"))
	if errors.Is(err, fs.ErrNotExist) || !bytes.Contains(known, []byte("use_libuv")) {
		return nil
	}
	if err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(root, distributed), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".py" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if mended := withoutLibuv(source); !bytes.Equal(mended, source) {
			return os.WriteFile(path, mended, 0o644)
		}
		return nil
	})
}

// withoutLibuv returns a Python file whose stores do not use libuv unless USE_LIBUV is 1.
func withoutLibuv(source []byte) []byte {
	source = bytes.ReplaceAll(source, []byte(`"USE_LIBUV", "1"`), []byte(`"USE_LIBUV", "0"`))
	return storeCall.ReplaceAllFunc(source, func(call []byte) []byte {
		if bytes.Contains(call, []byte("use_libuv=")) {
			return call
		}
		return storeCall.ReplaceAll(call, []byte("$1 use_libuv=False,$2"))
	})
}
