// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package same_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlbatch/mlbatch/test/same/corpus"
)

const (
	// ownNode is the label and the taint of nodes that one object has for itself, because one of them will be lost.
	ownNode = "same.mlbatch.dev/own"
	// ownNodes is enough for an object whose pods are all on different nodes, and for one that is lost.
	ownNodes = 6
)

// keepApart gives an object nodes of its own if one of them will be lost.
func (w *world) keepApart(ctx context.Context, c corpus.Case, o *unstructured.Unstructured, owner string) error {
	if !c.Loses() {
		return nil
	}
	taint := &corev1.Taint{Key: ownNode, Value: owner, Effect: corev1.TaintEffectNoSchedule}
	for i := range ownNodes {
		if err := w.nodes.Register(ctx, fmt.Sprintf("play-%s-%d", owner, i), taint); err != nil {
			return err
		}
	}
	onOwnNodes(o.Object, owner)
	return nil
}

// onOwnNodes sends all pods of an object to the nodes of an owner.
func onOwnNodes(value any, owner string) {
	switch v := value.(type) {
	case map[string]any:
		if _, isPod := v["containers"]; isPod {
			v["nodeSelector"] = map[string]any{ownNode: owner}
			v["tolerations"] = []any{map[string]any{"key": ownNode, "operator": "Exists"}}
		}
		for _, inner := range v {
			onOwnNodes(inner, owner)
		}
	case []any:
		for _, inner := range v {
			onOwnNodes(inner, owner)
		}
	}
}
