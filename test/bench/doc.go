// SPDX-License-Identifier: Apache-2.0

// Package bench is what is measured of the platform: how many lives of AppWrappers and of Runs a
// second, how fast each begins and ends, what the API server is asked, and the processor time and memory
// of every process. Scenarios are files; bare Jobs in the same run are the limit of the machine. Its folder
// cluster runs the scenarios, and report makes a page of the results.
//
// Times are printed and never asserted. Counts and ratios are compared with budgets.yaml.
package bench
