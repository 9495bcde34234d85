// SPDX-License-Identifier: Apache-2.0

// Follow prints its conclusion about each AppWrapper of a namespace whenever it changes. See docs/programs.md.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

var ofPhases = map[string]string{"": "Waits", "Suspended": "Waits", "Resuming": "Starts", "Running": "Starts", "Resetting": "TriesAgain"}

type counts struct{ FailureRetries, StartupRetries, Migrations, Preemptions int }

type appWrapper struct {
	Metadata struct{ Name, UID, ResourceVersion, DeletionTimestamp string }
	Status   struct {
		counts
		Phase        string
		Conditions   []struct{ Type, Status, Reason string }
		LastAttempts []struct{ Cause string }
	}
}

// A conclusion that has Ended is never taken back.
type conclusion struct {
	UID, Name, AsOf, Is, Because string
	Ended                        bool
	counts
}

func conclude(aw appWrapper) conclusion {
	meta, status, reasons, because := aw.Metadata, aw.Status, map[string]string{}, map[string]string{}
	for _, c := range status.Conditions {
		if c.Status == "True" {
			reasons[c.Type] = c.Reason
		}
	}
	for _, a := range status.LastAttempts {
		because["Failed"], because["TriesAgain"] = a.Cause, a.Cause
	}
	because["Deactivated"], because["WaitsAgain"] = reasons["Deactivated"], reasons["Requeued"]
	is := cmp.Or(ofPhases[status.Phase], "Unknown")
	switch {
	case reasons["Finished"] != "":
		is = reasons["Finished"]
	case meta.DeletionTimestamp != "":
		is = "BeingDeleted"
	case reasons["Deactivated"] != "":
		is = "Deactivated"
	case reasons["Requeued"] != "":
		is = "WaitsAgain"
	case status.Phase == "Running" && reasons["PodsReady"] != "":
		is = "Runs"
	}
	return conclusion{meta.UID, meta.Name, meta.ResourceVersion, is, because[is], reasons["Finished"] != "", status.counts}
}

type follower struct {
	server *server
	file   string
	known  map[string]conclusion // by UID. The file keeps it for the time after a restart
}

func (f *follower) see(now conclusion, gone bool) {
	was := f.known[now.UID]
	if gone && !now.Ended {
		now.Is, now.Because, now.Ended = "Deleted", "", true
	}
	if was.AsOf = now.AsOf; !was.Ended && now != was {
		must(json.NewEncoder(os.Stdout).Encode(now)) // a program acts here; after a crash it may do so twice
		f.known[now.UID] = now
	}
	if gone {
		delete(f.known, now.UID)
	}
	text, err := json.Marshal(f.known)
	must(errors.Join(err, os.WriteFile(f.file+".new", text, 0o600)))
	must(os.Rename(f.file+".new", f.file))
}

// follow lists, and watches until the watch ends or fails. Then it has to list again.
func (f *follower) follow() error {
	list, err := f.server.list()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, aw := range list.Items {
		there[aw.Metadata.UID] = true
		f.see(conclude(aw), false)
	}
	for uid, was := range f.known {
		if was.AsOf = list.Metadata.ResourceVersion; !there[uid] { // it went while nobody watched
			f.see(was, true)
		}
	}
	return f.server.watch(list.Metadata.ResourceVersion, func(aw appWrapper, gone bool) { f.see(conclude(aw), gone) })
}

// The arguments: what kubectl config view --minify --flatten --raw --output json printed, a namespace, and a file to
// remember conclusions in.
func main() {
	f := follower{server: connect(os.Args[1], os.Args[2]), file: os.Args[3], known: map[string]conclusion{}}
	if text, err := os.ReadFile(f.file); err == nil {
		must(json.Unmarshal(text, &f.known))
	}
	for {
		if err := f.follow(); err != nil {
			fmt.Fprintln(os.Stderr, "listing again, because", err)
			time.Sleep(time.Second)
		}
	}
}
