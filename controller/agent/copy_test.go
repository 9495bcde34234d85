// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/mlbatch/mlbatch/test/s3server"
)

// The options are those of an init container, and the keys have the new line of a file.
func TestCopy(t *testing.T) {
	server := s3server.Start(t)
	if _, err := server.Client.PutObject(t.Context(), s3server.Bucket, "train/a", strings.NewReader("b"), 1, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEFLARE_ACCESS_KEY_ID", s3server.AccessKeyID+"\n")
	t.Setenv("CODEFLARE_SECRET_ACCESS_KEY", s3server.SecretAccessKey+"\n")
	folder := t.TempDir()
	run := func(limit string) error {
		agent := command()
		agent.SetArgs([]string{
			"copy", folder, "--limit=" + limit, "--endpoint=" + server.Endpoint, "--bucket=" + s3server.Bucket, "--prefix=train", "--region=us-east-1",
		})
		return agent.ExecuteContext(t.Context())
	}
	if err := run("8Ki"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "a")); err != nil || string(text) != "b" {
		t.Errorf("got %q (%v)", text, err)
	}
	for limit, want := range map[string]string{"7Ki": "the objects have more than 7Ki: ", "much": "--limit is not an amount: "} {
		if err := run(limit); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("with a limit of %s it says %v", limit, err)
		}
	}
}

// What the agent does not read from its environment, no server would be trusted with.
func TestCopyReadsTheAuthorities(t *testing.T) {
	t.Setenv("CODEFLARE_AUTHORITIES", "none")
	agent := command()
	agent.SetArgs([]string{"copy", t.TempDir(), "--endpoint=https://localhost:1", "--bucket=pictures"})
	if err := agent.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "ca.crt in the Secret of the DataSet has no certificate") {
		t.Errorf("got %v", err)
	}
}
