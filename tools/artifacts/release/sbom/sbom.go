// SPDX-License-Identifier: Apache-2.0

// Package sbom makes the bill of materials of a release, as CycloneDX, from the build info of
// its programs and from the images of its charts. It uses no clock and no random numbers:
// the same release has the same bill.
package sbom

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/mlbatch/mlbatch/setup"
)

// A File is a released file.
type File struct {
	Name, SHA256 string
	// Programs are the build infos of the programs in it.
	Programs []*debug.BuildInfo
	// Images are the references of the images that a cluster pulls for it.
	Images []string
}

// Of is the bill of materials of these files.
func Of(v setup.Versions, files []File) ([]byte, error) {
	product := cdx.Component{
		BOMRef: "product", Type: cdx.ComponentTypeApplication, Name: "mlbatch", Version: v.Version,
		PackageURL: "pkg:golang/" + v.Module + "@" + v.Version,
	}
	contents := map[string]cdx.Component{}
	needs := map[string][]string{}
	for _, file := range files {
		add(contents, cdx.Component{
			BOMRef: "file:" + file.Name, Type: cdx.ComponentTypeFile, Name: file.Name,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: file.SHA256}},
		})
		needs[product.BOMRef] = append(needs[product.BOMRef], "file:"+file.Name)
		needs["file:"+file.Name] = parts(contents, file)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &product}
	bom.Components = inOrder(contents, func(c cdx.Component) string { return c.BOMRef })
	bom.Dependencies = dependencies(needs)
	var out bytes.Buffer
	// Current scanners read 1.6.
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("cannot write the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// parts adds the content of a file, and returns its references.
func parts(contents map[string]cdx.Component, file File) []string {
	var refs []string
	for _, program := range file.Programs {
		refs = append(refs, add(contents, library("std", strings.TrimPrefix(program.GoVersion, "go"))))
		for _, module := range program.Deps {
			module = cmp.Or(module.Replace, module)
			refs = append(refs, add(contents, library(module.Path, module.Version)))
		}
	}
	for _, reference := range file.Images {
		refs = append(refs, add(contents, container(reference)))
	}
	return refs
}

func add(contents map[string]cdx.Component, c cdx.Component) (ref string) {
	contents[c.BOMRef] = c
	return c.BOMRef
}

// library is a Go module; std is Go's own library.
func library(module, version string) cdx.Component {
	purl := "pkg:golang/" + module + "@" + version
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: module, Version: version, PackageURL: purl}
}

func container(reference string) cdx.Component {
	at := strings.LastIndex(reference, ":")
	repository, tag := reference[:at], reference[at+1:]
	purl := fmt.Sprintf("pkg:oci/%s?repository_url=%s&tag=%s", path.Base(repository), url.QueryEscape(repository), tag)
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeContainer, Name: repository, Version: tag, PackageURL: purl}
}

func inOrder[T any](all map[string]T, key func(T) string) *[]T {
	list := slices.SortedFunc(maps.Values(all), func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return &list
}

// dependencies lists the dependencies of each reference without duplicates.
func dependencies(needs map[string][]string) *[]cdx.Dependency {
	all := map[string]cdx.Dependency{}
	for ref, needed := range needs {
		slices.Sort(needed)
		needed = slices.Compact(needed)
		all[ref] = cdx.Dependency{Ref: ref, Dependencies: &needed}
	}
	return inOrder(all, func(d cdx.Dependency) string { return d.Ref })
}
