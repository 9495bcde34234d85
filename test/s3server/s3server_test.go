// SPDX-License-Identifier: Apache-2.0

package s3server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/mlbatch/mlbatch/test/s3server"
)

// The server honours If-None-Match, also when many write at once.
func TestAnObjectIsCreatedOnce(t *testing.T) {
	server := s3server.Start(t)
	codes := map[int]int{}
	var lock sync.Mutex
	var writers sync.WaitGroup
	for range 20 {
		writers.Go(func() {
			var once minio.PutObjectOptions
			once.SetMatchETagExcept("*")
			_, err := server.Client.PutObject(t.Context(), s3server.Bucket, "a", strings.NewReader("b"), 1, once)
			lock.Lock()
			defer lock.Unlock()
			codes[minio.ToErrorResponse(err).StatusCode]++
		})
	}
	writers.Wait()
	if codes[0] != 1 || codes[http.StatusPreconditionFailed] != 19 {
		t.Errorf("of 20 writers, these got errors: %v", codes)
	}
}
