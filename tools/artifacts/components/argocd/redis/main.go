// SPDX-License-Identifier: Apache-2.0

// Command redis is the Redis in memory that Argo CD's own tests and its command in core mode use.
// It serves on the address that it is given, until it is killed.
package main

import (
	"log"
	"os"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: redis ADDRESS")
	}
	if err := miniredis.NewMiniRedis().StartAddr(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	select {}
}
