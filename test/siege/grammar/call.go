// SPDX-License-Identifier: Apache-2.0

// Package grammar draws what somebody with a role may send to an API server, from a seed. It knows no attack: it takes
// kinds from the role, values from the corners of their schemas, and vocabulary from what operators read. It calls no
// API, so that the same seed always draws the same calls.
package grammar

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Episode stands for the name of an episode in names and bodies. No name of Kubernetes has capitals.
const Episode = "EPISODE"

// Verb is what a call does.
type Verb string

// The verbs. Wait lets controllers work until the episode has pods, or for some seconds.
const (
	Create Verb = "create"
	Patch  Verb = "patch"
	Delete Verb = "delete"
	Scale  Verb = "scale"
	Wait   Verb = "wait"
)

// Call is one request. Its fields are values, so that a script of them can be kept and sent again.
type Call struct {
	Verb     Verb
	Resource string // with its group, such as pytorchjobs.kubeflow.org
	Name     string
	// Nth selects what a controller has made for the episode, by its place among all objects of the
	// resource, if there is no name.
	Nth  int
	Type string // of a patch: merge, json or apply
	Body any
	// Propagation and Grace are options of a deletion. They are left out if they are empty.
	Propagation string
	Grace       *int64
	// Twin is sent at the same time.
	Twin *Call
	// About says in a few words what is unusual.
	About string
}

// Text is a body with the name of an episode, and with the UIDs of objects that it names.
func Text(body any, episode string, uid func(resource, name string) string) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.ReplaceAll(string(text), Episode, episode), uidMark)
	for i := 1; i < len(parts); i++ {
		reference, rest, _ := strings.Cut(parts[i], `"`)
		resource, name, _ := strings.Cut(reference, "/")
		parts[i] = uid(resource, name) + `"` + rest
	}
	return []byte(strings.Join(parts, "")), nil
}

// uidMark begins a string that stands for the UID of RESOURCE/NAME.
const uidMark = "UID:"

// Script returns what a person would type to do the same, a line for each call.
func Script(calls []Call, episode string) (lines []string) {
	for _, c := range calls {
		line, about := c.line(episode), c.About
		if c.Twin != nil {
			line += " & " + c.Twin.line(episode) + " & wait"
			about += " | " + c.Twin.About
		}
		if strings.Trim(about, "| ") != "" {
			line += " # " + strings.ReplaceAll(about, Episode, episode)
		}
		lines = append(lines, line)
	}
	return lines
}

func (c Call) line(episode string) string {
	body, err := Text(c.Body, episode, func(resource, name string) string {
		return fmt.Sprintf("'$(kubectl get %s %s -o jsonpath={.metadata.uid})'", resource, name)
	})
	if err != nil {
		return err.Error()
	}
	target := c.Resource + " " + c.target(episode)
	switch c.Verb {
	case Wait:
		return fmt.Sprintf("sleep %v", c.Body)
	case Create:
		return fmt.Sprintf("echo '%s' | kubectl create -f -", body)
	case Patch:
		if c.Type == Apply {
			return fmt.Sprintf("echo '%s' | kubectl apply --server-side --force-conflicts -f -", body)
		}
		return fmt.Sprintf("kubectl patch %s --type=%s -p '%s'", target, c.Type, body)
	case Scale:
		return fmt.Sprintf("kubectl patch %s --subresource=scale --type=merge -p '%s'", target, body)
	}
	return "kubectl delete " + target + c.options() + " --wait=false"
}

// options of a deletion. Without a propagationPolicy, kubectl would say background.
func (c Call) options() (text string) {
	if c.Propagation != "" {
		text += " --cascade=" + strings.ToLower(c.Propagation)
	}
	if c.Grace != nil {
		text += fmt.Sprintf(" --grace-period=%d", *c.Grace)
	}
	return text
}

func (c Call) target(episode string) string {
	if c.Name == "" {
		return fmt.Sprintf("$(kubectl get %s -o name | grep %s | sed -n %dp)", c.Resource, episode, c.Nth+1)
	}
	return strings.ReplaceAll(c.Name, Episode, episode)
}

// Requests counts the requests among calls.
func Requests(calls []Call) (n int) {
	for _, c := range calls {
		if c.Verb != Wait {
			n++
		}
		if c.Twin != nil {
			n++
		}
	}
	return n
}
