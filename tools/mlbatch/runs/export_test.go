// SPDX-License-Identifier: Apache-2.0

package runs

// WaitWithPause is Wait with another pause between attempts.
var WaitWithPause = wait
