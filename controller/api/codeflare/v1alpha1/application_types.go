// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Application says what can be run, and how.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=applications,singular=application,shortName=app,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="API",type="string",JSONPath=`.spec.api`
// +kubebuilder:printcolumn:name="Image",type="string",JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`
type Application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ApplicationSpec `json:"spec"`
}

// ApplicationList is a list of Applications.
//
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Application `json:"items"`
}

// API is an archetype: what the platform makes of a command.
type API string

const (
	// APITorch starts the command with torchrun in each of the workers.
	APITorch API = "torch"
	// APIRay submits the command to a Ray cluster or, if there is none, only makes the cluster.
	APIRay API = "ray"
	// APIShell runs the command in each of the workers.
	APIShell API = "shell"
	// APIWorkQueue runs the command once for each task of a queue.
	APIWorkQueue API = "workqueue"
	// APIWorkflow runs other Applications, each when those before it have ended.
	APIWorkflow API = "workflow"
	// APISequence is a workflow whose steps run one after the other.
	APISequence API = "sequence"
)

// IsWorkflow is true of an API that runs other Applications.
func (a API) IsWorkflow() bool { return a == APIWorkflow || a == APISequence }

// ApplicationSpec describes a program.
//
// +kubebuilder:validation:XValidation:rule="!(self.api in ['torch', 'ray', 'shell', 'workqueue']) || (has(self.image) && size(self.image) > 0)",messageExpression="'a ' + self.api + ' Application needs an image'"
// +kubebuilder:validation:XValidation:rule="!(self.api in ['torch', 'shell', 'workqueue']) || (has(self.command) && size(self.command.trim()) > 0)",messageExpression="'a ' + self.api + ' Application needs a command'"
// +kubebuilder:validation:XValidation:rule="!has(self.ray) || self.api == 'ray'",message="the block ray is for api ray"
// +kubebuilder:validation:XValidation:rule="self.api == 'ray' || !has(self.requirements) || size(self.requirements) == 0",message="requirements are for api ray: for others, put the packages into the image"
// +kubebuilder:validation:XValidation:rule="self.api != 'ray' || (has(self.command) && size(self.command.trim()) > 0) || (!has(self.requirements) || size(self.requirements) == 0) && (!has(self.options) || size(self.options.trim()) == 0)",message="a ray Application without a command is an interactive cluster, which takes neither options nor requirements"
// +kubebuilder:validation:XValidation:rule="!has(self.torch) || self.api == 'torch'",message="the block torch is for api torch"
// +kubebuilder:validation:XValidation:rule="!has(self.workqueue) || self.api == 'workqueue'",message="the block workqueue is for api workqueue"
// +kubebuilder:validation:XValidation:rule="has(self.workflow) == (self.api == 'workflow')",message="a workflow Application needs the block workflow, which others do not have"
// +kubebuilder:validation:XValidation:rule="has(self.steps) == (self.api == 'sequence')",message="a sequence Application needs steps, which others do not have: those of a workflow are in its block"
// +kubebuilder:validation:XValidation:rule="self.api != 'torch' || !has(self.command) || !self.command.trim().contains('\\n')",message="the command of a torch Application is one line, because torchrun starts it: put more into a script"
// +kubebuilder:validation:XValidation:rule="self.api != 'torch' || !has(self.options) || !self.options.trim().contains('\\n')",message="the options of a torch Application are one line, because torchrun gets them"
// +kubebuilder:validation:XValidation:rule="!has(self.repo) || !has(self.code)",message="code comes from repo or from code, not from both"
// +kubebuilder:validation:XValidation:rule="!has(self.repoSecret) || has(self.repo)",message="repoSecret is for repo: add it"
type ApplicationSpec struct {
	// API is the archetype: torch, ray, shell, workqueue, workflow or sequence. The last two only run other
	// Applications.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self in ['torch', 'ray', 'shell', 'workqueue', 'workflow', 'sequence']",message="api must be torch, ray, workqueue, workflow, shell or sequence; what was kubeflow is a workflow now"
	API API `json:"api"`

	// Image has the program. It is required for all but workflow and sequence.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\S*$')",message="the name of an image has no blanks"
	Image string `json:"image,omitempty"`

	// Command is a shell line. It is required for torch, shell and workqueue; a ray Application without one
	// is an interactive cluster. For torch it is a Python program with its arguments; a leading
	// python or torchrun is left out.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Command string `json:"command,omitempty"`

	// Options are appended to the command after a space. Those of a Run replace them.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Options string `json:"options,omitempty"`

	Variables `json:",inline"`

	// Requirements are pip packages that Ray installs for the command, each a line of a
	// requirements file.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Requirements []Requirement `json:"requirements,omitempty"`

	// Code has files of the program, not with repo. They are in its working folder, /workdir.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(file, self.exists_one(other, other.name == file.name))",message="each file of code has a name of its own"
	Code []CodeFile `json:"code,omitempty"`

	// Repo is a folder of a git repository, https://HOST/ORG/REPO/tree/REF/DIR. Its files are in
	// the program's working folder, /workdir. REF is a branch, a tag or a commit. Not with code.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Repo string `json:"repo,omitempty"`

	// RepoSecret is a Secret of the Run's namespace with user and password (user, pat) for the
	// repository.
	// +optional
	RepoSecret *SecretReference `json:"repoSecret,omitempty"`

	// Inputs are the data that the program needs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Inputs []Input `json:"inputs,omitempty"`

	// Size is the size of Runs that name none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Size string `json:"size,omitempty"`

	// SupportsGPU says that the program can use GPUs. A Run gets the GPUs of its size if the
	// Run says so, too.
	// +optional
	SupportsGPU bool `json:"supportsGpu,omitempty"`

	// MinCPU is of 2023, when nothing read it either: sizes count.
	// +optional
	MinCPU *Amount `json:"minCpu,omitempty"`

	// MinMemory is of 2023, when nothing read it either: sizes count.
	// +optional
	MinMemory *Amount `json:"minMemory,omitempty"`

	// MinGPU is of 2023, when nothing read it either: sizes count.
	// +optional
	MinGPU *Amount `json:"minGpu,omitempty"`

	// ImagePullSecret is a Secret of the Run's namespace with which the image is pulled.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ImagePullSecret string `json:"imagePullSecret,omitempty"`

	// SecurityContext is for all pods.
	// +optional
	SecurityContext *SecurityContext `json:"securityContext,omitempty"`

	// Torch has settings of api torch.
	// +optional
	Torch *Torch `json:"torch,omitempty"`

	// Ray has settings of api ray.
	// +optional
	Ray *Ray `json:"ray,omitempty"`

	// WorkQueue has settings of api workqueue.
	// +optional
	WorkQueue *WorkQueue `json:"workqueue,omitempty"`

	// Workflow has the steps of api workflow.
	// +optional
	Workflow *Workflow `json:"workflow,omitempty"`

	// Steps of api sequence are Applications of the same namespace, which run one after the other.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Steps []string `json:"steps,omitempty"`
}

// Requirement is a line of a requirements file.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\PC*$') && size(self.trim()) > 0",message="a requirement is one line of a requirements file, without control characters"
type Requirement string

// Variables are given to the program in its environment.
type Variables struct {
	// Env has variables by name, at most 128. Values reach the program as they are written. Of a
	// variable that Application and Run set, the Run's value counts. Names that begin with
	// CODEFLARE_ are the platform's.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[A-Za-z_][-._A-Za-z0-9]*$'))",message="the name of a variable has letters, digits, _, - and dots only, and does not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="self.all(name, !name.startsWith('CODEFLARE_'))",message="names that begin with CODEFLARE_ are the platform's"
	Env map[string]Text `json:"env,omitempty"`

	// EnvFrom are ConfigMaps and Secrets of the Run's namespace whose entries become variables.
	// The Run's come after the Application's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(source, has(source.configMapRef) ? !has(source.secretRef) && size(source.configMapRef.name) > 0 : has(source.secretRef) && size(source.secretRef.name) > 0)",message="each of envFrom names either a ConfigMap (configMapRef) or a Secret (secretRef)"
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
}

// Text is the value of a variable.
//
// +kubebuilder:validation:MaxLength=32768
type Text string

// CodeFile is a file of the program.
type CodeFile struct {
	// Name is that of the file. There are at most 8 files.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._A-Za-z0-9]+$') && self != '.' && !self.startsWith('..')",message="the name of a file of code has letters, digits, dots, - and _ only, and does not begin with two dots"
	Name string `json:"name"`

	// Source is its content, at most 64 KiB.
	// +kubebuilder:validation:MaxLength=65536
	Source string `json:"source"`
}

// SecretReference names a Secret of the Run's namespace.
type SecretReference struct {
	// Name is the Secret's, with the keys user, pat and ca.crt.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace may only repeat the Run's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// Input is a DataSet that the program needs.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.sizes)",message="an input has either a name or sizes"
// +kubebuilder:validation:XValidation:rule="!has(self.defaultSize) || (has(self.sizes) && self.defaultSize in self.sizes)",message="defaultSize is one of the input's sizes"
// +kubebuilder:validation:XValidation:rule="!has(self.mountPath) || !has(self.useas) || self.useas == 'mount'",message="mountPath is for data that is mounted: leave it out, or let useas be mount"
type Input struct {
	// Name is that of a DataSet in the Run's namespace. An input has either a name or sizes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Namespace may only repeat the Run's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// UseAs says how the program finds the data: mount (the default) is a folder, and configmap
	// are variables with the place of a bucket.
	// +optional
	// +kubebuilder:validation:Enum=mount;configmap
	UseAs UseAs `json:"useas,omitempty"`

	// Sizes has a DataSet for each size of the data. The Run's field input names one.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	Sizes map[string]DataSetName `json:"sizes,omitempty"`

	// DefaultSize is the size for Runs whose input is none of them. Without it, the smallest of
	// xxs, xs, sm, md, lg, xl and xxl is taken.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	DefaultSize string `json:"defaultSize,omitempty"`

	// MountPath is the folder, /mnt/datasets/NAME if absent.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^:]*[^:/][^:]*$') && !self.split('/').exists(part, part in ['.', '..'])",message="mountPath begins with /, is not the root, and has no colon and no .."
	MountPath string `json:"mountPath,omitempty"`
}

// UseAs is how a program finds data.
type UseAs string

const (
	// UseAsMount is a folder.
	UseAsMount UseAs = "mount"
	// UseAsConfigMap are variables.
	UseAsConfigMap UseAs = "configmap"
)

// DataSetName is the name of a DataSet.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type DataSetName string

// SecurityContext says as whom the program runs.
type SecurityContext struct {
	// RunAsUser is the user's ID.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RunAsGroup is the ID of the user's group.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// FSGroup is the ID of the group that volumes belong to.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	FSGroup *int64 `json:"fsGroup,omitempty"`
}

// TorchBackend is the kind that makes the pods of a torch Run.
type TorchBackend string

const (
	// PyTorchJob is run by the Kubeflow training operator.
	PyTorchJob TorchBackend = "PyTorchJob"
	// JobSet is run by the JobSet controller.
	JobSet TorchBackend = "JobSet"
)

// Torch has settings of api torch.
type Torch struct {
	// Backend is the kind that makes the pods: PyTorchJob or JobSet.
	// +optional
	// +kubebuilder:validation:Enum=PyTorchJob;JobSet
	// +kubebuilder:default=PyTorchJob
	Backend TorchBackend `json:"backend,omitempty"`
}

// Ray has settings of api ray.
type Ray struct {
	// HeadResources replace those that the head gets by the size, one by one. 0 is none.
	// +optional
	HeadResources Resources `json:"headResources,omitempty"`
}
