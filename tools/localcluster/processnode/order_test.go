// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestInterfacesHaveDifferentNames(t *testing.T) {
	one, other := bridgeEnd(), bridgeEnd()
	if one == other || len(one) >= unix.IFNAMSIZ {
		t.Errorf("the names are %s and %s", one, other)
	}
}
