// SPDX-License-Identifier: Apache-2.0

// Command images writes the container images of this repository as OCI archives.
//
//	go run ./tools/artifacts/images controller [-out dist] [-arch amd64,arm64]
//	go run ./tools/artifacts/images agent [-out dist] [-arch amd64,arm64]
//	go run ./tools/artifacts/images workload [-out dist] [-arch amd64,arm64]
//	go run ./tools/artifacts/images torch [-cache DIR]
//
// It prints the path of the archive.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/mlbatch/mlbatch/tools/artifacts/images/controller"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/torch"
	"github.com/mlbatch/mlbatch/tools/artifacts/images/workload"
)

const usage = `usage: images controller [-out DIR] [-arch LIST] [-checkout DIR]
       images agent [-out DIR] [-arch LIST] [-checkout DIR]
       images workload [-out DIR] [-arch LIST] [-checkout DIR]
       images torch [-cache DIR]`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	path, err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stderr, usage)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "images: interrupted; run the command again")
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	default:
		fmt.Println(path)
	}
}

func run(ctx context.Context, args []string) (archivePath string, err error) {
	if len(args) == 0 {
		return "", errors.New("name an image\n" + usage)
	}
	switch args[0] {
	case "controller":
		return compiledImage(ctx, controller.Controllers.Build, args)
	case "agent":
		return compiledImage(ctx, controller.Agent.Build, args)
	case "workload":
		return compiledImage(ctx, workload.Build, args)
	case "torch":
		return torchImage(ctx, args[1:])
	}
	return "", fmt.Errorf("unknown image %q\n%s", args[0], usage)
}

// compiledImage builds an image of a program of this repository.
func compiledImage(ctx context.Context, build func(context.Context, string, string, ...string) (string, error), args []string) (string, error) {
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	out := flags.String("out", "dist", "folder to write the archive to")
	archs := flags.String("arch", strings.Join(controller.Published, ","), "architectures, separated by commas")
	checkout := flags.String("checkout", ".", "root of the repository")
	if err := parse(flags, args[1:]); err != nil {
		return "", err
	}
	list := strings.Split(*archs, ",")
	for _, arch := range list {
		if !slices.Contains(controller.Published, arch) {
			return "", fmt.Errorf("-arch: %q is not one of %s", arch, strings.Join(controller.Published, ", "))
		}
	}
	return build(ctx, *checkout, *out, list...)
}

func torchImage(ctx context.Context, args []string) (string, error) {
	flags := flag.NewFlagSet("torch", flag.ContinueOnError)
	cache := flags.String("cache", "", "cache folder (default: mlbatch/images in the user's cache folder)")
	if err := parse(flags, args); err != nil {
		return "", err
	}
	if *cache == "" {
		dir, err := torch.DefaultDir()
		if err != nil {
			return "", err
		}
		*cache = dir
	}
	return torch.Build(ctx, *cache, os.Stderr)
}

func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s does not take the argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}
