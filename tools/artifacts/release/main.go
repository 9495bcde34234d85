// SPDX-License-Identifier: Apache-2.0

// Command release builds all files of a release of MLBatch. With -registry, it also pushes the
// image and the charts. Run it from the root of the repository. The same sources give the
// same files, byte for byte, except for signatures.
//
//	go run ./tools/artifacts/release [-out dist] [-registry ghcr.io/mlbatch] [-keyring FILE -keyring-user NAME] [-key FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/mlbatch/mlbatch/setup"
	"github.com/mlbatch/mlbatch/tools/artifacts/compiler"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "release: interrupted; run the command again")
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, progress io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	checkout := flags.String("checkout", ".", "root of the repository")
	out := flags.String("out", "dist", "folder to write to")
	registry := flags.String("registry", "", "registry folder to push to, such as ghcr.io/mlbatch; by default nothing is pushed")
	keyring := flags.String("keyring", "", "file with an exported secret key of GnuPG, with which charts are signed as helm package --sign does")
	user := flags.String("keyring-user", "", "whose key in the keyring, such as a mail address")
	key := flags.String("key", "", "PEM file with a private key (ECDSA P-256, PKCS #8), with which images and checksums are signed as cosign does")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q; give the registry as -registry HOST/FOLDER", flags.Arg(0))
	}
	signers, err := readSigners(*keyring, *user, *key)
	if err != nil {
		return err
	}
	versions, err := setup.Load()
	if err != nil {
		return err
	}
	if *registry != "" {
		if err := isFolder(*registry); err != nil {
			return err
		}
		versions = versions.ReleasedTo(*registry)
	}
	absolute, err := filepath.Abs(*out) // go build runs in another folder
	if err != nil {
		return fmt.Errorf("cannot find the folder %s: %w", *out, err)
	}
	r := release{versions: versions, charts: *checkout, sources: *checkout, out: absolute, progress: progress, signers: signers}
	r.compile = func(ctx context.Context, command compiler.Program, out string) error {
		return command.Compile(ctx, out)
	}
	if err := r.write(ctx); err != nil || *registry == "" {
		return err
	}
	return r.push(ctx)
}
