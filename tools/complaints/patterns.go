// SPDX-License-Identifier: Apache-2.0

package complaints

import (
	"fmt"
	"regexp"
	"strings"
)

// patterns are those of the charts' schemas, and what is wrong with a value that does not match. A reader who meant
// 512GB cannot see that in a regular expression.
var patterns = map[string]string{
	`^[0-9]+(\.[0-9]+)?([munkMGTPE]|[KMGTPE]i)?$`:                                                                        anAmount,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:                                                                                    aName,
	`^[a-z]([-a-z0-9]*[a-z0-9])?$`:                                                                                       aName,
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`:                                                                                   aName,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`:                                                  aName,
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`:                                               aName,
	`^$|^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`:                                       aDevice,
	`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`:                                       aKey,
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`: aKey,
	`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`:                                                                 "is no value of a label: use at most 63 letters and digits, and - _ . between them",
	`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9][-a-z0-9._]*)*/?)?$`:                                            "is no registry: write HOST or HOST/FOLDER in lower case, without https:// or oci://",
	`^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\.|/)){4}(3[0-2]|[12]?[0-9])$`:                                        aRange,
	`^[0-9A-Fa-f]*:[0-9A-Fa-f:.]*/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$`:                                                     aRange,
	`^([0-9]+(ms|[smhdwy]))+$`:                                                                                           aDuration,
	`^([0-9]{1,4}d|([0-9]{1,6}(\.[0-9]+)?(h|m|s))+)?$`:                                                                   aDuration,
	`^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?[0-9]{1,2})?$`:                        anAmount,
	`^([0-9]{1,4}d)?([0-9]{1,5}(\.[0-9]+)?h|[0-9]{1,7}(\.[0-9]+)?m|[0-9]{1,9}(\.[0-9]+)?(ns|us|µs|ms|s)){0,8}$`:          aDuration,
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`:                                          aDevice,
	`^[-._a-zA-Z][-._a-zA-Z0-9]*$`:                                                                                       "is no name of a variable: use letters, digits and _, and no digit first",
	`^\S+$`:                                                                                                              "is empty or has spaces: write one word",
	`^[^:]+$`:                                                                                                            "is no path: write one such as /data, without a colon",
	`^/[-A-Za-z0-9_./]+$`:                                                                                                "is no path: write one such as /data/progress, with letters, digits and - _ . / only",
	`^[-+.0-9a-zµ]+$`:                                                                                                    aDuration,
	`^([0-9]|[1-9][0-9]|100)%$`:                                                                                          "is no share: write a number, or one with %",
	`^[A-Z_]+$`:                                                                                                          "is no capability: write it in capitals, such as IPC_LOCK",
	`^(/[^/,.][^/,]*)+$`:                                                                                                 "is no folder of a node: write a path such as /mnt/nvme, without . or .. in it",
}

const (
	anAmount  = "is no amount: write a number, and a unit such as m, k, M, G, Ki, Mi or Gi"
	aDevice   = "is no device: write DOMAIN/NAME, such as nvidia.com/gpu"
	aName     = "is no name: use lower-case letters and digits, and - between them"
	aKey      = "is no name of a resource or label: write NAME or DOMAIN/NAME, such as nvidia.com/gpu"
	aRange    = "is no range of addresses: write one such as 10.0.0.0/8"
	aDuration = "is no duration: write one such as 30s, 5m or 1h"
)

// mismatch matches a complaint about a pattern, tooSmall one about a number.
var (
	mismatch = regexp.MustCompile(`^(.*) does not match pattern (.*)$`)
	tooSmall = regexp.MustCompile(`^minimum: got (\S+), want (\S+)$`)
)

// unknown matches a complaint about names, and ofType one about a type.
var (
	unknown = regexp.MustCompile(`^additional properties (.*) not allowed$`)
	ofType  = regexp.MustCompile(`^got (\w+), want (.*)$`)
)

// types are in the words of JSON Schema and in ours.
var types = strings.NewReplacer("null or ", "", "integer", "a whole number", "number", "a number", "string", "a text",
	"boolean", "true or false", "array", "a list", "object", "a map", "null", "empty")

// inWords rewrites a complaint that comes alone.
func inWords(c complaint) complaint {
	if names := unknown.FindStringSubmatch(c.text); names != nil {
		c.text = "nothing is called " + strings.ReplaceAll(names[1], ", ", " or ") + " here"
	} else if found := ofType.FindStringSubmatch(c.text); found != nil {
		c.text = "is " + types.Replace(found[1]) + ", and must be " + types.Replace(found[2])
	}
	return c
}

// plainly rewrites complaints whose meaning is hard to see.
func plainly(text string) string {
	if number := tooSmall.FindStringSubmatch(text); number != nil {
		return fmt.Sprintf("is %s, and must be at least %s", number[1], number[2])
	}
	found := mismatch.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	for pattern, words := range patterns {
		if found[2] == asPrinted(pattern) {
			return found[1] + " " + words
		}
	}
	return text
}

// asPrinted quotes a pattern as the schema's library does.
func asPrinted(pattern string) string {
	text := fmt.Sprintf("%q", pattern)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\"`, `"`), `'`, `\'`)
	return "'" + text[1:len(text)-1] + "'"
}
