// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// An object of a cluster has 1.5 MiB at most, and a ConfigMap 1 MiB; base64 takes a third more.
const (
	mostBytes = 512 << 10
	mostFiles = 200
	// Quotes and control characters take two to six bytes in JSON.
	mostWritten = 1 << 20
)

// file is a file that a job carries.
type file struct {
	path    string // within the folder, with slashes
	content []byte
}

// carry reads what the job of a program carries: the script, or all files of its folder but hidden
// ones and what Python has compiled.
func (p Program) carry() ([]file, error) {
	info, err := os.Stat(p.Script)
	if err != nil {
		return nil, fmt.Errorf("cannot read the program: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name the script that runs, and its folder with --folder", p.Script)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file: name the script that runs", p.Script)
	}
	if info.Size() == 0 {
		return nil, fmt.Errorf("%s is empty: name the script that runs", p.Script)
	}
	if leftOut(filepath.Base(p.Script)) {
		return nil, fmt.Errorf("%s would stay behind: a job carries no hidden files, __pycache__ and *.pyc: rename it", p.Script)
	}
	if p.Folder != "" {
		return p.carryFolder()
	}
	l := load{folder: filepath.Dir(p.Script)}
	err = l.add(p.Script, fs.FileInfoToDirEntry(info))
	return l.files, err
}

func (p Program) carryFolder() ([]file, error) {
	script, err := p.inFolder()
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(p.Folder); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: name one that has the script", p.Folder)
	}
	l := load{folder: p.Folder}
	if err := filepath.WalkDir(p.Folder, l.visit); err != nil {
		return nil, err
	}
	for _, f := range l.files {
		if f.path == script {
			return l.files, nil
		}
	}
	return nil, fmt.Errorf("%s is in a folder that stays behind: a job carries no hidden folders and no __pycache__: rename it", p.Script)
}

// load is what a job carries of a folder.
type load struct {
	folder  string
	files   []file
	size    int64
	largest string
	most    int64 // size of the largest file
}

// visit adds a file, or returns why the job cannot carry it.
func (l *load) visit(name string, entry fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("cannot read the program: %w", err)
	case name != l.folder && leftOut(entry.Name()) && entry.IsDir():
		return fs.SkipDir
	case entry.IsDir() || leftOut(entry.Name()):
		return nil
	case !entry.Type().IsRegular():
		return fmt.Errorf("%s is a link or a device, and a job carries only files: replace it by a file, or move it out of %s", name, l.folder)
	}
	return l.add(name, entry)
}

func (l *load) add(name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return fmt.Errorf("cannot read the program: %w", err)
	}
	l.size += info.Size()
	if info.Size() >= l.most {
		l.largest, l.most = name, info.Size()
	}
	if err := l.tooMuch(len(l.files) + 1); err != nil {
		return err
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("cannot read the program: %w", err)
	}
	within, err := filepath.Rel(l.folder, name)
	l.files = append(l.files, file{filepath.ToSlash(within), content})
	return err
}

// leftOut reports whether a folder is carried without a file or folder of this name: .git, .env, .venv,
// __pycache__.
func leftOut(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__pycache__" || strings.HasSuffix(name, ".pyc")
}

// tooMuch returns an error if files are too many or too large for a job.
func (l *load) tooMuch(files int) error {
	if l.size > mostBytes {
		return fmt.Errorf("%s has %d KiB, and a job carries at most %d KiB in all: put data on a volume (setting volumes), "+
			"or clone the code with git (setting setupCommands)", l.largest, l.most>>10, mostBytes>>10)
	}
	if files > mostFiles {
		return fmt.Errorf("%s has more than %d files, and a job carries no more: name a smaller folder, or clone the code with git "+
			"(setting setupCommands)", l.folder, mostFiles)
	}
	return nil
}

var noKey = regexp.MustCompile(`[^-._a-zA-Z0-9]`)

// keyOf is the key of the i-th file in the ConfigMap.
func keyOf(i int, f file) string {
	base := noKey.ReplaceAllString(path.Base(f.path), "_")
	return fmt.Sprintf("%03d.%s", i, base[:min(len(base), 200)])
}

// volume is the entry of the setting extraVolumes with which the containers see what the job carries.
func volume(job string, files []file) map[string]any {
	var items []any
	for i, f := range files {
		items = append(items, map[string]any{"key": keyOf(i, f), "path": f.path})
	}
	return map[string]any{"name": "mlbatch-program", "mountPath": mounted, "readOnly": true,
		"configMap": map[string]any{"name": mapOf(job), "defaultMode": 0o555, "items": items}}
}

// mapOf is the name of the ConfigMap with what a job carries.
func mapOf(job string) string { return job + "-program" }

// withFiles adds what a job carries to its AppWrapper, as a component, and returns its manifest.
func withFiles(aw *v1beta2.AppWrapper, files []file) (string, error) {
	object := corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: mapOf(aw.Name)},
		Data: map[string]string{}, BinaryData: map[string][]byte{}}
	for i, f := range files {
		if utf8.Valid(f.content) {
			object.Data[keyOf(i, f)] = string(f.content)
		} else {
			object.BinaryData[keyOf(i, f)] = f.content
		}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("cannot write the program into the job: %w", err)
	}
	if len(raw) > mostWritten {
		return "", fmt.Errorf("what %s carries has %d KiB when it is written as JSON, and a job has room for %d: carry less, or clone the code with git "+
			"(setting setupCommands)", aw.Name, len(raw)>>10, mostWritten>>10)
	}
	component := v1beta2.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}}
	aw.Spec.Components = slices.Insert(aw.Spec.Components, 0, component)
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(aw)
	if err != nil {
		return "", fmt.Errorf("cannot write the job: %w", err)
	}
	delete(written, "status")
	text, err := yaml.Marshal(written)
	return string(text), err
}
