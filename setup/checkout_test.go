// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCheckoutIsFoundFromItsFolders(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{".", "..", "../docs/decisions"} {
		if got, err := Checkout(from); err != nil || got != root {
			t.Errorf("from %s: got %s, %v, want %s", from, got, err, root)
		}
	}
}

func TestNoCheckoutIsFoundOutsideOfOne(t *testing.T) {
	if _, err := Checkout(os.TempDir()); !errors.Is(err, ErrNoCheckout) {
		t.Errorf("got %v", err)
	}
}
