// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"
)

// Program is a script on the user's machine, which its job carries along.
type Program struct {
	// Script is its path. One whose name ends in .py is a Python program; another one is executed.
	Script string
	// Folder is carried with the script, which lies in it. Empty means the script alone.
	Folder string
	// Arguments of the script.
	Arguments []string
	// Array, if it is not nil, has the numbers with each of which the script runs once.
	Array *Array
}

const (
	// mounted is where the containers find what the job carries.
	mounted = "/mlbatch/program"
	// longestName leaves room for the suffix of a generated name and for names of pods.
	longestName = 44
)

// Job renders the job of the program with further settings. Without the setting jobName, it has a
// generated name.
func (p Program) Job(version string, settings map[string]any) (Job, error) {
	if err := free(settings, "the job runs "+p.Script); err != nil {
		return Job{}, err
	}
	carried, err := p.carry()
	if err != nil {
		return Job{}, err
	}
	script, err := p.inFolder()
	if err != nil {
		return Job{}, err
	}
	return p.job(version, named(settings, p.name()), script, carried)
}

// job renders the job of a script in what is carried.
func (p Program) job(version string, settings map[string]any, script string, carried []file) (Job, error) {
	if err := free(settings, "the job runs "+p.Script); err != nil {
		return Job{}, err
	}
	all, kept := maps.Clone(settings), p.recipe(settings, script, carried)
	enough(all)
	if _, err := New(version, all); err != nil { // in words about the user's own settings
		return Job{}, err
	}
	if p.Array != nil && !p.Array.apart() {
		if err := p.Array.fits(all); err != nil {
			return Job{}, err
		}
		if _, set := all["retryLimit"]; !set {
			all["retryLimit"] = int64(0) // the Job tries each number again by itself
		}
	}
	p.start(all, script, carried)
	return render(version, all, parts{files: carried, array: p.Array, recipe: kept})
}

// named are settings with a generated name if they have none. The chart judges every other one.
func named(settings map[string]any, beginning string) map[string]any {
	all := maps.Clone(settings)
	if all["jobName"] == nil {
		all["jobName"] = beginning + "-" + rand.String(5)
	}
	return all
}

// free returns an error if settings say what the job runs, or with which kind of job.
func free(settings map[string]any, because string) error {
	for _, taken := range []string{"mainProgram", "backend"} {
		if value := settings[taken]; value != nil && value != "pytorchjob" {
			return fmt.Errorf("the settings have %s, but %s: remove it", taken, because)
		}
	}
	return nil
}

// amount is a setting that is an integer. A settings file has floating-point numbers, a flag has integers.
func amount(settings map[string]any, name string, absent int64) int64 {
	number, err := strconv.ParseInt(fmt.Sprint(settings[name]), 10, 64)
	if err != nil { // it is absent: the chart's schema refuses everything else
		return absent
	}
	return number
}

// enough sets CPUs and memory that a script with so many GPUs will hardly do without.
func enough(settings map[string]any) {
	cpus, memory := int64(1), int64(4)
	if gpus := amount(settings, "numGpusPerPod", 0); gpus > 0 {
		cpus, memory = 4*gpus, 16*gpus
	}
	for name, value := range map[string]any{"numCpusPerPod": cpus, "totalMemoryPerPod": fmt.Sprintf("%dGi", memory)} {
		if _, set := settings[name]; !set {
			settings[name] = value
		}
	}
}

// start adds to settings what runs the program: a writable copy of what is carried, and the command.
func (p Program) start(settings map[string]any, script string, carried []file) {
	volumes, _ := settings["extraVolumes"].([]any)
	setup, _ := settings["setupCommands"].([]any)
	settings["extraVolumes"] = append(slices.Clone(volumes), volume(fmt.Sprint(settings["jobName"]), carried))
	setup = slices.Clone(setup)
	setup = append(setup, `cd "$(mktemp -d)"`, "cp -rL "+mounted+"/* .")
	if p.Array != nil {
		setup = append(setup, p.Array.environment()...)
	}
	command := strings.Join(quoted(append([]string{"./" + script}, p.Arguments...)), " ")
	switch python := path.Ext(script) == ".py"; {
	case !python:
		setup = append(setup, "exec "+command)
	case single(settings):
		// What torchrun would set, for an image without it. Its traceback comes without torchrun's own.
		setup = append(setup, "export LOCAL_RANK=0 LOCAL_WORLD_SIZE=1", "exec python3 "+command)
	case amount(settings, "numGpusPerPod", 0) == 0:
		// The training operator would have torchrun start one per CPU of the node.
		settings["mainProgram"] = "--nproc_per_node=1 " + command
	default:
		settings["mainProgram"] = command
	}
	settings["setupCommands"] = setup
}

// single reports whether the job is one process: one pod with at most one GPU.
func single(settings map[string]any) bool {
	return amount(settings, "numPods", 1) == 1 && amount(settings, "numGpusPerPod", 0) <= 1
}

var (
	noName = regexp.MustCompile(`[^a-z0-9]+`)
	plain  = regexp.MustCompile(`^[-+.,/:=@_A-Za-z0-9]+$`)
)

// name is the beginning of a generated name.
func (p Program) name() string {
	base := filepath.Base(p.Script)
	name := noName.ReplaceAllString(strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base))), "-")
	name = strings.Trim(name, "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = strings.TrimSuffix("job-"+name, "-")
	}
	return strings.TrimRight(name[:min(len(name), longestName)], "-")
}

// inFolder is the path of the script within what is carried, with slashes.
func (p Program) inFolder() (string, error) {
	if p.Folder == "" {
		return filepath.Base(p.Script), nil
	}
	folder, err1 := filepath.Abs(p.Folder)
	script, err2 := filepath.Abs(p.Script)
	if err := errors.Join(err1, err2); err != nil {
		return "", fmt.Errorf("cannot find %s: %w", p.Script, err)
	}
	within, err := filepath.Rel(folder, script)
	if err != nil || !filepath.IsLocal(within) {
		return "", fmt.Errorf("%s is not in the folder %s: name a folder that has it", p.Script, p.Folder)
	}
	return filepath.ToSlash(within), nil
}

// quoted quotes words for a shell.
func quoted(words []string) []string {
	var all []string
	for _, word := range words {
		if !plain.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		all = append(all, word)
	}
	return all
}
