// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no certificates

	"github.com/mlbatch/mlbatch/controller/internal/fetch"
)

// terminationLog is what the kubelet makes the termination message.
const terminationLog = "/dev/termination-log"

// fetchCommand is for code in a git repository.
func fetchCommand() *cobra.Command {
	var tree fetch.Tree
	var secret, to, message string
	fetchTree := &cobra.Command{
		Use:   "fetch",
		Short: "Fetch a folder of a git repository; the commit is the termination message",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if secret != "" {
				if err := tree.ReadSecret(secret); err != nil {
					return err
				}
			}
			commit, err := tree.Fetch(cmd.Context(), to)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s of %s\n", commit, tree.Repository)
			if err := os.WriteFile(message, []byte(commit), 0o666); err != nil {
				return fmt.Errorf("cannot say which commit it is: %w", err)
			}
			return nil
		},
	}
	flags := fetchTree.Flags()
	flags.StringVar(&tree.Repository, "repository", "", "URL of the repository")
	flags.StringVar(&tree.Path, "tree", "", "a branch, a tag or a commit, and a folder of it")
	flags.StringVar(&to, "to", "", "folder to write to")
	flags.StringVar(&secret, "secret", "", "folder with the files user, pat and ca.crt")
	flags.StringVar(&message, "message", terminationLog, "file for the commit")
	return fetchTree
}
