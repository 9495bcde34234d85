// SPDX-License-Identifier: Apache-2.0

package install

import (
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/access"
	"github.com/mlbatch/mlbatch/tools/mlbatch/install/helmrelease"
)

// rightsToInstall returns the rights to create, read, change and delete all objects of the
// releases, including Helm's records.
func rightsToInstall(api access.API, all []*delivery) access.Rights {
	var r access.Rights
	r.Add("apps", "deployments", "", "list")
	r.Add("", "namespaces", "", "get", "create", "patch")
	for _, d := range all {
		r.Add("", "secrets", d.Namespace, "get", "create", "patch", "delete", "list", "update")
		helmrelease.AddConversionRights(&r, d.objects)
		for _, o := range d.objects {
			r.AddFor(api, o, "get", "create", "patch", "delete")
			if field(o) != "" {
				r.AddFor(api, o, "update")
			}
		}
	}
	return r
}
