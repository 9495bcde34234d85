// SPDX-License-Identifier: Apache-2.0

// Package queue has the words of a work queue: what workers, the broker and the command mlbatch say
// to each other over HTTP. A task is named after its file below the inbox. In a path the name is
// escaped as a whole: a slash is %2F.
package queue

// What a worker is told by its environment, and what it tells the program of a task.
const (
	// AddressVariable has the URL of the broker.
	AddressVariable = "CODEFLARE_QUEUE"
	// CommandVariable has the shell line that is run for each task.
	CommandVariable = "CODEFLARE_COMMAND"
	// TaskVariable, AttemptVariable, InputVariable and OutputVariable are of the task.
	TaskVariable    = "CODEFLARE_TASK"
	AttemptVariable = "CODEFLARE_ATTEMPT"
	InputVariable   = "CODEFLARE_TASK_INPUT"
	OutputVariable  = "CODEFLARE_TASK_OUTPUT"
)

// How a broker ends, beside 0.
const (
	// ExitHopeless means that it is of no use to start it again.
	ExitHopeless = 65
	// ExitReplaced means that there is a later broker of the same queue.
	ExitReplaced = 66
)

// Port is where the broker listens.
const Port = 8080

// Paths of requests. A task follows TasksPath; a task, a slash and a token follow ResultsPath.
const (
	LeasePath   = "/v1/lease"
	TasksPath   = "/v1/tasks/"
	RenewPath   = "/v1/renew"
	ResultsPath = "/v1/results/"
	DonePath    = "/v1/done"
	FailedPath  = "/v1/failed"
	ReleasePath = "/v1/release"
	DrainPath   = "/v1/drain"
	ByePath     = "/v1/bye"
	StatPath    = "/v1/stat"
)

// Limits.
const (
	// MaxTasks is how many tasks a queue has.
	MaxTasks = 100_000
	// MaxBytes is how large a task or a result is.
	MaxBytes = 256 << 20
	// MaxName is how long the escaped name of a task is.
	MaxName = 200
	// MaxLog is how many bytes of each stream of the program are stored.
	MaxLog = 64 << 10
	// MaxTold is how many tasks a Stat names.
	MaxTold = 1000
)

// Worker is the body of POST lease and bye.
type Worker struct {
	Worker string `json:"worker"`
}

// Lease is the answer to POST lease. No content means that there is no task now; 410, that there
// will be none.
type Lease struct {
	Task         string `json:"task"`
	Token        string `json:"token"`
	LeaseSeconds int    `json:"leaseSeconds"`
	// TimeoutSeconds is how long the program may take; 0 is any time.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
}

// Report is the body of POST renew, done, failed and release.
type Report struct {
	Task   string `json:"task"`
	Token  string `json:"token"`
	Worker string `json:"worker,omitempty"`
	Log    *Log   `json:"log,omitempty"`
}

// Log is what is stored of an attempt: the end of what its program wrote.
type Log struct {
	Worker string `json:"worker"`
	Code   int    `json:"code"`
	// Reason is of attempts that ended without an exit code: expired, released or timeout.
	Reason string `json:"reason,omitempty"`
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
}

// States of a task.
const (
	Pending = "Pending"
	Leased  = "Leased"
	Done    = "Done"
	Dead    = "Dead"
)

// Stat is the answer to GET stat.
type Stat struct {
	Pending int `json:"pending"`
	Leased  int `json:"leased"`
	Done    int `json:"done"`
	Dead    int `json:"dead"`
	// Open means that tasks can be added; Drained, that no more are; Closed, that all have ended.
	Open    bool `json:"open"`
	Drained bool `json:"drained"`
	Closed  bool `json:"closed"`
	// Tasks are at most MaxTold: dead ones first, then leased, pending and done ones. More says
	// that there are others.
	Tasks []Task `json:"tasks,omitempty"`
	More  bool   `json:"more,omitempty"`
}

// Task is one task in a Stat.
type Task struct {
	Name string `json:"name"`
	// State is Pending, Leased, Done or Dead.
	State string `json:"state"`
	// Attempts is how many have ended badly.
	Attempts int `json:"attempts"`
	// Worker has the task, or had it last.
	Worker string `json:"worker,omitempty"`
	// Code is the exit code of the last attempt that ended badly.
	Code int `json:"code,omitempty"`
}

// End is the termination message of a broker.
type End struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	// Message says which tasks failed. It is empty if all is well.
	Message string `json:"message,omitempty"`
}
