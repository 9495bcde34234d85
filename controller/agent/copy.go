// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlbatch/mlbatch/controller/internal/fetch"
)

// Variables with what the Secret of a bucket has. A file that a Secret was made of often ends in a new line.
const (
	accessKeyVariable   = "CODEFLARE_ACCESS_KEY_ID"
	secretValueVariable = "CODEFLARE_SECRET_ACCESS_KEY" //nolint:gosec // It is a name.
	authorityVariable   = "CODEFLARE_AUTHORITIES"
)

// copyCommand is for data in buckets.
func copyCommand() *cobra.Command {
	var bucket fetch.Bucket
	var limit string
	command := &cobra.Command{
		Use:   "copy TO",
		Short: "Copy the objects of a bucket",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			size, err := resource.ParseQuantity(limit)
			if err != nil {
				return fmt.Errorf("--limit is not an amount: %w", err)
			}
			bucket.AccessKeyID = strings.TrimSpace(os.Getenv(accessKeyVariable))
			bucket.SecretAccessKey = strings.TrimSpace(os.Getenv(secretValueVariable))
			bucket.Authorities = os.Getenv(authorityVariable)
			return bucket.Copy(command.Context(), args[0], size.Value(), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&bucket.Endpoint, "endpoint", "", "URL of an S3 server")
	flags.StringVar(&bucket.Name, "bucket", "", "name of the bucket")
	flags.StringVar(&bucket.Prefix, "prefix", "", "folder of the bucket")
	flags.StringVar(&bucket.Region, "region", "", "region of the bucket")
	flags.StringVar(&limit, "limit", "10Gi", "how much may be copied")
	return command
}
