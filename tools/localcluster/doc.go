// SPDX-License-Identifier: Apache-2.0

// Package localcluster runs a real Kubernetes on one Linux machine without
// Docker: etcd, API server, controller manager, scheduler, kubelet,
// kube-proxy, containerd and CoreDNS as built from their pinned modules, with
// one node that runs pods and any number of KWOK nodes that pretend to. A simulated
// cluster has the control plane and KWOK only, and instead of containers the
// platform's pods as processes (see processnode); any user may run it.
//
// Everything lives in private namespaces below one process, the keeper, and in
// one folder. When the keeper ends the kernel clears the rest away; Down also
// removes the folder and the cgroups.
//
//	host                         │ namespaces of the cluster "mlbatch"
//	                             │
//	localcluster up ──starts──┼─► keeper (process 1)
//	                             │     ├─ containerd ─ pods on bridge cni0 10.200.0.0/24
//	kubectl ──127.0.0.1:PORT─────┼─►   ├─ etcd, kube-apiserver :6443 (audit log)
//	          (socket made here, │     ├─ kube-controller-manager, kube-scheduler
//	           handed inside)    │     ├─ kubelet, kube-proxy (nftables)
//	                             │     └─ kwok
package localcluster
