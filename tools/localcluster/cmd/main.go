// SPDX-License-Identifier: Apache-2.0

// Command localcluster runs a real Kubernetes on a Linux machine, without Docker, to develop
// MLBatch. It prints an error as one line on standard error, and exits with status 1.
package main

import "github.com/mlbatch/mlbatch/tools/commandline"

func main() { program().Main() }

func program() commandline.Program {
	return commandline.Program{Name: "localcluster", Root: rootCommand}
}
