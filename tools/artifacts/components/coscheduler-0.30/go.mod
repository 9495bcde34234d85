// The coscheduler for Kubernetes 1.30.
module github.com/mlbatch/mlbatch/tools/artifacts/components/coscheduler-0.30

go 1.26.0

tool (
	sigs.k8s.io/scheduler-plugins/cmd/controller
	sigs.k8s.io/scheduler-plugins/cmd/scheduler
)

require sigs.k8s.io/scheduler-plugins v0.30.12

replace (
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc => go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.46.0
	go.opentelemetry.io/otel => go.opentelemetry.io/otel v1.21.0
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc => go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc v1.21.0
	go.opentelemetry.io/otel/metric => go.opentelemetry.io/otel/metric v1.21.0
	go.opentelemetry.io/otel/sdk => go.opentelemetry.io/otel/sdk v1.21.0
	go.opentelemetry.io/otel/trace => go.opentelemetry.io/otel/trace v1.21.0
	k8s.io/api => k8s.io/api v0.30.12
	k8s.io/apiextensions-apiserver => k8s.io/apiextensions-apiserver v0.30.12
	k8s.io/apimachinery => k8s.io/apimachinery v0.30.12
	k8s.io/apiserver => k8s.io/apiserver v0.30.12
	k8s.io/cli-runtime => k8s.io/cli-runtime v0.30.12
	k8s.io/client-go => k8s.io/client-go v0.30.12
	k8s.io/cloud-provider => k8s.io/cloud-provider v0.30.12
	k8s.io/cluster-bootstrap => k8s.io/cluster-bootstrap v0.30.12
	k8s.io/code-generator => k8s.io/code-generator v0.30.12
	k8s.io/component-base => k8s.io/component-base v0.30.12
	k8s.io/component-helpers => k8s.io/component-helpers v0.30.12
	k8s.io/controller-manager => k8s.io/controller-manager v0.30.12
	k8s.io/cri-api => k8s.io/cri-api v0.30.12
	k8s.io/csi-translation-lib => k8s.io/csi-translation-lib v0.30.12
	k8s.io/dynamic-resource-allocation => k8s.io/dynamic-resource-allocation v0.30.12
	k8s.io/endpointslice => k8s.io/endpointslice v0.30.12
	k8s.io/kms => k8s.io/kms v0.30.12
	k8s.io/kube-aggregator => k8s.io/kube-aggregator v0.30.12
	k8s.io/kube-controller-manager => k8s.io/kube-controller-manager v0.30.12
	k8s.io/kube-proxy => k8s.io/kube-proxy v0.30.12
	k8s.io/kube-scheduler => k8s.io/kube-scheduler v0.30.12
	k8s.io/kubectl => k8s.io/kubectl v0.30.12
	k8s.io/kubelet => k8s.io/kubelet v0.30.12
	k8s.io/kubernetes => k8s.io/kubernetes v1.30.12
	k8s.io/legacy-cloud-providers => k8s.io/legacy-cloud-providers v0.30.12
	k8s.io/metrics => k8s.io/metrics v0.30.12
	k8s.io/mount-utils => k8s.io/mount-utils v0.30.12
	k8s.io/pod-security-admission => k8s.io/pod-security-admission v0.30.12
	k8s.io/sample-apiserver => k8s.io/sample-apiserver v0.30.12
)
