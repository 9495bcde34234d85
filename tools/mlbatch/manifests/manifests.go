// SPDX-License-Identifier: Apache-2.0

// Package manifests reads the Kubernetes objects in files, folders and standard input. It does
// not know what they are for.
package manifests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// Document is an object, and where it is.
type Document struct {
	// File is "-" for standard input.
	File   string
	Object *unstructured.Unstructured
}

// Read reads all objects, in their order: those of files, of folders and, for "-", of stdin. A
// folder stands for its manifests, in the order of their names, and with recursive also for those
// in its folders. A list stands for its items.
func Read(names []string, stdin io.Reader, recursive bool) ([]Document, error) {
	var all []Document
	for _, name := range names {
		files, err := expand(name, recursive)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := readFile(file, stdin)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// suffixes are those of manifests in folders.
var suffixes = []string{".yaml", ".yml", ".json"}

// expand returns the manifests of a folder, or else the file itself, which need not exist.
func expand(name string, recursive bool) ([]string, error) {
	if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() {
		return []string{name}, nil
	}
	files, err := inFolder(name, recursive)
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s has no %s file: name the files themselves", name, strings.Join(suffixes, ", "))
	}
	return files, nil
}

func inFolder(folder string, recursive bool) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case !entry.IsDir():
			if slices.Contains(suffixes, filepath.Ext(path)) {
				files = append(files, path)
			}
		case recursive:
			below, err := inFolder(path, recursive)
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
		}
	}
	return files, nil
}

func readFile(name string, stdin io.Reader) ([]Document, error) {
	text, err := Text(name, stdin)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// Text reads a file or, for "-", all of stdin.
func Text(name string, stdin io.Reader) (text []byte, err error) {
	if name == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests: %w", err)
	}
	return text, nil
}

// Parse returns the objects in the text of a file.
func Parse(name string, text []byte) ([]Document, error) {
	found, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	documents := make([]Document, len(found))
	for i := range found {
		documents[i] = Document{File: name, Object: found[i]}
	}
	return documents, nil
}

// parse returns the objects of a text, with lists resolved.
func parse(text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var objects []*unstructured.Unstructured
		if err == nil {
			objects, err = parseDocument(document)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read document %d: %s", number, inWords(err))
		}
		all = append(all, objects...)
	}
}

// mistakes are what people often have in a file, by the words of the parser about them.
var mistakes = []struct{ theirs, ours string }{
	{"cannot start any token", ": indent with spaces, not with tabs"},
	{"invalid map key", ": a template with {{…}} has to be rendered first, as helm template does"},
}

// inWords is a parser's error, which may have several lines.
func inWords(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, m := range mistakes {
		if strings.Contains(text, m.theirs) {
			return text + m.ours
		}
	}
	return text
}

func parseDocument(document []byte) ([]*unstructured.Unstructured, error) {
	texts := jsonValues(document)
	if len(texts) == 0 {
		text, err := fromYAML(document)
		if err != nil {
			return nil, err
		}
		texts = []json.RawMessage{text}
	}
	var all []*unstructured.Unstructured
	for _, text := range texts {
		if string(text) == "null" {
			continue // a document without content
		}
		object, err := decode(text)
		if err != nil {
			return nil, err
		}
		found, err := items(object)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// jsonValues are those of a stream of JSON, or none if the document is something else. YAML does
// not have all escapes of JSON.
func jsonValues(document []byte) []json.RawMessage {
	var all []json.RawMessage
	for decoder := json.NewDecoder(bytes.NewReader(document)); ; {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return nil
		}
		all = append(all, value)
	}
}

func fromYAML(document []byte) (json.RawMessage, error) {
	text, err := sigsyaml.YAMLToJSON(document) // the strict one refuses a field beside "<<"
	if err != nil {
		return nil, err
	}
	return text, single(document)
}

// decode refuses fields that are there twice: one of them would be lost.
func decode(text []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil || object.GetAPIVersion() == "" {
		return nil, errors.New("it is no Kubernetes object: it needs apiVersion, kind and metadata")
	}
	twice, err := kjson.UnmarshalStrict(text, &map[string]any{})
	return object, errors.Join(append(twice, err)...)
}

// single refuses text after the document, as after a line of "...": it would be left out silently.
func single(document []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(document))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		return nil // there is nothing, or only what one of two parsers takes for an error
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return errors.New(`another one follows it: write a line of "---" before each`)
	}
	return once(&first)
}

// once refuses keys that are there twice. One that "<<" merges may be there again.
func once(node *yaml.Node) error {
	seen := map[string]bool{}
	for i, inner := range node.Content {
		isKey := node.Kind == yaml.MappingNode && i%2 == 0 && inner.Kind == yaml.ScalarNode && inner.Tag != "!!merge"
		if isKey && seen[inner.Value] {
			return fmt.Errorf("line %d: key %q is there twice: remove one", inner.Line, inner.Value)
		}
		if isKey {
			seen[inner.Value] = true
		}
		if err := once(inner); err != nil {
			return err
		}
	}
	return nil
}

// items returns the objects in a list, and any other object as it is.
func items(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	isList := object.IsList() && strings.HasSuffix(object.GetKind(), "List")
	if !isList && object.GetKind() != "List" {
		return []*unstructured.Unstructured{object}, nil
	}
	if !isList {
		return nil, errors.New("the List has no items")
	}
	var all []*unstructured.Unstructured
	err := object.EachListItem(func(o runtime.Object) error {
		item, is := o.(*unstructured.Unstructured)
		if !is || item.GetKind() == "" || item.GetAPIVersion() == "" {
			return fmt.Errorf("an item of the %s is no Kubernetes object: it needs apiVersion, kind and metadata", object.GetKind())
		}
		found, err := items(item)
		all = append(all, found...)
		return err
	})
	return all, err
}
