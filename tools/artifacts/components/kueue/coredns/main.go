// Command coredns is CoreDNS with the plugins that a local cluster needs and
// no others: the full program links every cloud vendor's SDK, which costs two
// minutes of compilation for nothing here.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func init() {
	// The order in which plugins see a query: a server block may only use these.
	dnsserver.Directives = []string{"errors", "health", "ready", "cache", "kubernetes"}
}

func main() {
	coremain.Run()
}
