// SPDX-License-Identifier: Apache-2.0

// Package localcluster runs a real Kubernetes on one Linux machine without Docker. It
// builds etcd, API server, controller manager, scheduler, kubelet, kube-proxy,
// containerd and CoreDNS from their pinned modules. One node runs pods; any number of
// KWOK nodes simulate them. A simulated cluster has only the control plane and KWOK,
// and runs the platform's pods as processes (see processnode); any user may run it.
//
// Everything runs in private namespaces below one process, the keeper, and lies in one
// folder. When the keeper exits, the kernel removes processes, mounts and network. Down
// also removes the folder and the cgroups.
//
//	host                         │ namespaces of the cluster "mlbatch"
//	                             │
//	localcluster up ──starts─────┼─► keeper (process 1)
//	                             │     ├─ containerd ─ pods on bridge cni0 10.200.0.0/24
//	kubectl ──127.0.0.1:PORT─────┼─►   ├─ etcd, kube-apiserver :6443 (audit log)
//	          (socket opened     │     ├─ kube-controller-manager, kube-scheduler
//	           on the host)      │     ├─ kubelet, kube-proxy (nftables)
//	                             │     └─ kwok
package localcluster
