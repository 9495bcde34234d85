// SPDX-License-Identifier: Apache-2.0

package work

// WaitWithPause is Wait that looks at bare jobs more often.
var WaitWithPause = wait
