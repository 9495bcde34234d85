// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// copier writes the Secret's key pair into the certificate directory as soon as
// it changes. The kubelet would do the same for a mounted Secret, but only at
// its next sync, which delays a first installation by a minute or two.
type copier struct {
	cache     cache.Cache
	directory string
}

func newCopier(mgr manager.Manager, secret types.NamespacedName, directory string) (*copier, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{secret.Namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", secret.Name),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache for the certificate: %w", err)
	}
	return &copier{cache: c, directory: directory}, nil
}

// Start copies until the process ends.
func (c *copier) Start(ctx context.Context) error {
	informer, err := c.cache.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch the certificate: %w", err)
	}
	copyTo := func(object any) {
		secret, ok := object.(*corev1.Secret)
		if !ok {
			return
		}
		if err := write(c.directory, secret.Data); err != nil {
			log.FromContext(ctx).Error(err, "cannot copy the certificate", "directory", c.directory)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    copyTo,
		UpdateFunc: func(_, object any) { copyTo(object) },
	}); err != nil {
		return fmt.Errorf("cannot watch the certificate: %w", err)
	}
	return c.cache.Start(ctx)
}

// NeedLeaderElection is false: every replica serves the webhooks.
func (*copier) NeedLeaderElection() bool { return false }

// write puts the key before the certificate: the certificate's arrival is what
// others wait for. A directory that cannot be written is a mounted Secret,
// which the kubelet keeps up to date.
func write(directory string, data map[string][]byte) error {
	for _, name := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if len(data[name]) == 0 {
			return nil
		}
	}
	for _, name := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		err := replace(filepath.Join(directory, name), data[name])
		if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replace is atomic, so that the server never reads half a key.
func replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
