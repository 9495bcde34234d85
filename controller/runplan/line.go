// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// line is the shell line that the author wants to run: the command, a space and the options. A
// line break at the end of the command, as YAML's block texts have it, would separate the options;
// torch has one line in any case.
func (j job) line() string {
	options := j.Application.Spec.Options
	if j.Run.Spec.Options != nil {
		options = *j.Run.Spec.Options
	}
	if j.Application.Spec.API == v1alpha1.APITorch {
		options = strings.TrimSpace(options)
	}
	return trimRight(trimRight(j.Application.Spec.Command) + " " + options)
}

func trimRight(text string) string { return strings.TrimRightFunc(text, unicode.IsSpace) }

// torchrun starts the line once for each GPU, with the same arguments as the generator.
func torchrun(line string, gpus int64) string {
	return fmt.Sprintf(`torchrun --nnodes=${WORLD_SIZE} --node_rank=${RANK} --nproc_per_node=%d --rdzv_id=101 --rdzv_endpoint="${MASTER_ADDR}:${MASTER_PORT}" %s`,
		max(1, gpus), withoutLauncher(strings.TrimSpace(line)))
}

// withoutLauncher removes python, with its -u, or torchrun from the beginning of a line.
func withoutLauncher(line string) string {
	word, rest := cutWord(line)
	program := word[strings.LastIndex(word, "/")+1:]
	if program == "torchrun" {
		return rest
	}
	if version, is := strings.CutPrefix(program, "python"); !is || strings.Trim(version, "0123456789.") != "" {
		return line
	}
	if option, after := cutWord(rest); option == "-u" {
		return after
	}
	return rest
}

func cutWord(line string) (word, rest string) {
	end := strings.IndexFunc(line, unicode.IsSpace)
	if end < 0 {
		return line, ""
	}
	return line[:end], strings.TrimLeftFunc(line[end:], unicode.IsSpace)
}

// literal protects a text from Kubernetes, which expands $(NAME) and makes one $ of two in commands
// and in values of variables.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }
