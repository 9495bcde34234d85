// SPDX-License-Identifier: Apache-2.0

package taskqueue

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mlbatch/mlbatch/controller/api/queue"
)

// Key is how the store calls a task: no key has a slash, and none is longer than a file name.
func Key(name string) string {
	key := url.PathEscape(name)
	if key == "." || key == ".." {
		return strings.ReplaceAll(key, ".", "%2E") // In a bucket there can be such a file.
	}
	if len(key) <= queue.MaxName {
		return key
	}
	sum := sha256.Sum256([]byte(name))
	return key[:queue.MaxName] + "~" + hex.EncodeToString(sum[:8])
}

// Named is whether a file below the inbox, or a request, can have this name. No such name leaves
// the inbox, and none is another one after an S3 server has listed it.
func Named(name string) bool {
	outside := name == "" || name == "." || name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/")
	return !outside && path.Clean(name) == name && utf8.ValidString(name) && !strings.ContainsFunc(name, unlisted) && len(url.PathEscape(name)) <= queue.MaxName
}

// unlisted is what XML cannot have.
func unlisted(r rune) bool {
	return r < ' ' && !strings.ContainsRune("\t\n\r", r) || r == 0xFFFE || r == 0xFFFF
}

// token names an attempt: which life of the broker leased it, as which lease of that life.
func token(epoch, number int) string {
	return fmt.Sprintf("%d.%d", epoch, number)
}

// parsed is a token in parts. There is one way to write each.
func parsed(text string) (epoch, number int, ok bool) {
	first, second, _ := strings.Cut(text, ".")
	epoch, bad := strconv.Atoi(first)
	number, worse := strconv.Atoi(second)
	return epoch, number, bad == nil && worse == nil && epoch > 0 && number > 0 && token(epoch, number) == text
}
