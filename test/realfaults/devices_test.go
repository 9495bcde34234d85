// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package realfaults_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/mlbatch/mlbatch/tools/localcluster/plan"
)

// devicesOfNode are on the real node.
const devicesOfNode = 2

// devices is a device plugin of the real node's kubelet. Its devices are only names.
type devices struct {
	deviceplugin.UnimplementedDevicePluginServer
	mu sync.Mutex
	// broken of the devices are not healthy, and refuses says that none is handed out.
	broken  int
	refuses bool
	// changed is closed at the next change.
	changed chan struct{}
}

// plugIn starts the device plugin, as a program on the node would, until the test ends.
func (r *room) plugIn() *devices {
	r.Helper()
	var keeper plan.Keeper
	r.Must(plan.Read(r.cluster.Dir(), plan.KeeperFile, &keeper))
	folder := filepath.Join("/proc", fmt.Sprint(keeper.PID), "root", deviceplugin.DevicePluginPath)
	d := &devices{changed: make(chan struct{})}
	listener, err := net.Listen("unix", filepath.Join(folder, "realfaults.sock"))
	r.Must(err)
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, d)
	go func() { _ = server.Serve(listener) }()
	r.Cleanup(server.Stop)
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	r.Must(err)
	defer kubelet.Close()
	_, err = deviceplugin.NewRegistrationClient(kubelet).Register(r.Context(), &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: "realfaults.sock", ResourceName: string(gpu),
	})
	r.Must(err)
	r.Await("the node has devices", r.nodeIsWhole)
	return d
}

// GetDevicePluginOptions has none.
func (d *devices) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

// ListAndWatch tells the kubelet of the devices, and of each change.
func (d *devices) ListAndWatch(_ *deviceplugin.Empty, kubelet grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	for {
		list, changed := d.list()
		if err := kubelet.Send(list); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-kubelet.Context().Done():
			return nil
		}
	}
}

func (d *devices) list() (*deviceplugin.ListAndWatchResponse, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := &deviceplugin.ListAndWatchResponse{}
	for i := range devicesOfNode {
		health := deviceplugin.Healthy
		if i < d.broken {
			health = deviceplugin.Unhealthy
		}
		list.Devices = append(list.Devices, &deviceplugin.Device{ID: fmt.Sprintf("gpu-%d", i), Health: health})
	}
	return list, d.changed
}

// Allocate hands devices out to the containers of a pod.
func (d *devices) Allocate(_ context.Context, asked *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses {
		return nil, errors.New("the GPU has fallen off the bus")
	}
	answer := &deviceplugin.AllocateResponse{}
	for range asked.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &deviceplugin.ContainerAllocateResponse{})
	}
	return answer, nil
}

// become changes the devices until the test has ended.
func (r *room) become(change func(*devices)) {
	set := func(change func(*devices)) {
		r.devices.mu.Lock()
		defer r.devices.mu.Unlock()
		change(r.devices)
		close(r.devices.changed)
		r.devices.changed = make(chan struct{})
	}
	r.Cleanup(func() {
		set(func(d *devices) { d.broken, d.refuses = 0, false })
		r.finally("node is as good as new", r.nodeIsWhole)
	})
	set(change)
}

func handOutNothing(r *room) { r.become(func(d *devices) { d.refuses = true }) }
func breakOne(r *room)       { r.become(func(d *devices) { d.broken = 1 }) }
