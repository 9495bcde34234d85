// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"fmt"
	"slices"
	"time"
)

// Shell renders a job of one pod that runs nothing: people enter it. It ends, successfully, when nobody
// has been in it for so long. It is not started again.
func Shell(version string, settings map[string]any, idle time.Duration) (Job, error) {
	all := named(settings, "shell")
	if err := free(all, "a shell runs no program"); err != nil {
		return Job{}, err
	}
	if pods := amount(all, "numPods", 1); pods != 1 {
		return Job{}, fmt.Errorf("a shell has one pod, and not %d: remove numPods", pods)
	}
	if _, set := all["retryLimit"]; !set {
		all["retryLimit"] = int64(0)
	}
	enough(all)
	if _, err := New(version, all); err != nil { // in words about the user's own settings
		return Job{}, err
	}
	setup, _ := all["setupCommands"].([]any)
	all["setupCommands"] = append(slices.Clone(setup), untilNobodyIsIn(idle))
	return New(version, all)
}

// untilNobodyIsIn waits in a container until nobody has been in it for so long. Whoever is in has a process
// without a parent in the container, beside the first one.
func untilNobodyIsIn(idle time.Duration) string {
	return fmt.Sprintf(`trap 'exit 0' TERM
set +e
last=$(date +%%s)
while [ $(($(date +%%s) - last)) -lt %d ]; do
  first=0
  for file in /proc/[0-9]*/status; do
    while read -r key value; do
      [ "$key $value" = "PPid: 0" ] && first=$((first + 1)) && break
    done < "$file"
  done 2>/dev/null
  [ $first -gt 1 ] && last=$(date +%%s)
  sleep 5 & wait $!
done
echo "nobody was here for %s"
exit 0`, int(idle.Seconds()), idle)
}
