// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// world is the input of a rule: all objects of one release.
type world struct {
	deployments []appsv1.Deployment
	services    []corev1.Service
	accounts    []corev1.ServiceAccount
	budgets     []policyv1.PodDisruptionBudget
	policies    []networkingv1.NetworkPolicy
	roles       []rbacv1.ClusterRole // includes Roles
	bindings    []rbacv1.ClusterRoleBinding
	others      []object
}

func build(t *testing.T, manifest string) world {
	t.Helper()
	var w world
	for _, document := range strings.Split(manifest, "\n---\n") {
		switch o := parse(t, document); o.Kind {
		case "Deployment":
			w.deployments = append(w.deployments, read[appsv1.Deployment](t, document))
		case "Service":
			w.services = append(w.services, read[corev1.Service](t, document))
		case "ServiceAccount":
			w.accounts = append(w.accounts, read[corev1.ServiceAccount](t, document))
		case "PodDisruptionBudget":
			w.budgets = append(w.budgets, read[policyv1.PodDisruptionBudget](t, document))
		case "NetworkPolicy":
			w.policies = append(w.policies, read[networkingv1.NetworkPolicy](t, document))
		case "ClusterRole", "Role":
			w.roles = append(w.roles, read[rbacv1.ClusterRole](t, document))
		case "ClusterRoleBinding", "RoleBinding":
			w.bindings = append(w.bindings, read[rbacv1.ClusterRoleBinding](t, document))
		default:
			w.others = append(w.others, o)
		}
	}
	return w
}

func read[T any](t *testing.T, document string) T {
	t.Helper()
	var into T
	readWhole(t, document, &into)
	return into
}

// rules come from hardening guides and from kube-linter, with kube-linter's names where it
// has them; kubelinter_test.go has the whole list. Each rule returns what is wrong with one
// Deployment of a release.
var rules = []struct {
	name  string
	wrong func(world, appsv1.Deployment) string
}{
	{"pod-security-restricted", notRestricted},
	{"host-network", onTheNodesNetwork},
	{"no-read-only-root-fs", container(func(c corev1.Container) bool {
		return c.SecurityContext != nil && c.SecurityContext.ReadOnlyRootFilesystem != nil && *c.SecurityContext.ReadOnlyRootFilesystem
	})},
	{"unset-cpu-requirements", container(func(c corev1.Container) bool {
		return !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Limits.Cpu().IsZero()
	})},
	{"unset-memory-requirements", container(func(c corev1.Container) bool {
		return !c.Resources.Requests.Memory().IsZero() && !c.Resources.Limits.Memory().IsZero()
	})},
	{"no-liveness-probe", container(func(c corev1.Container) bool { return c.LivenessProbe != nil })},
	{"no-readiness-probe", container(func(c corev1.Container) bool { return c.ReadinessProbe != nil })},
	{"liveness-port, readiness-port, startup-port", container(func(c corev1.Container) bool {
		return named(c, c.LivenessProbe) && named(c, c.ReadinessProbe) && named(c, c.StartupProbe)
	})},
	{"latest-tag", container(func(c corev1.Container) bool {
		return strings.Contains(filepath.Base(c.Image), ":") && !strings.HasSuffix(c.Image, ":latest")
	})},
	{"env-var-secret, read-secret-from-env-var", container(func(c corev1.Container) bool {
		return !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return strings.Contains(strings.ToLower(e.Name), "secret") || e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil
		})
	})},
	{"duplicate-env-var", container(func(c corev1.Container) bool {
		names := map[string]bool{}
		for _, e := range c.Env {
			names[e.Name] = true
		}
		return len(names) == len(c.Env)
	})},
	{"privileged-ports, ssh-port", container(func(c corev1.Container) bool {
		return !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort < 1024 })
	})},
	{"default-service-account, non-existent-service-account", func(w world, d appsv1.Deployment) string {
		name := d.Spec.Template.Spec.ServiceAccountName
		if name == "default" || !slices.ContainsFunc(w.accounts, func(a corev1.ServiceAccount) bool { return a.Name == name }) {
			return "runs as " + name
		}
		return ""
	}},
	{"deprecated-service-account-field", func(_ world, d appsv1.Deployment) string {
		if d.Spec.Template.Spec.DeprecatedServiceAccount != "" {
			return "has the field serviceAccount"
		}
		return ""
	}},
	{"unneeded-service-account-token", func(w world, d appsv1.Deployment) string {
		pod := d.Spec.Template.Spec
		if pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken || bound(w, pod.ServiceAccountName) {
			return ""
		}
		return pod.ServiceAccountName + " has a token but no permissions"
	}},
	{"mismatching-selector", func(_ world, d appsv1.Deployment) string {
		if !selects(d.Spec.Selector, d.Spec.Template.Labels) {
			return "the selector does not match its own pods"
		}
		return ""
	}},
	{"no-anti-affinity", func(_ world, d appsv1.Deployment) string {
		if many(d) && len(d.Spec.Template.Spec.TopologySpreadConstraints) == 0 && d.Spec.Template.Spec.Affinity == nil {
			return "replicas are not spread"
		}
		return ""
	}},
	{"no PodDisruptionBudget", func(w world, d appsv1.Deployment) string {
		if many(d) != slices.ContainsFunc(w.budgets, func(b policyv1.PodDisruptionBudget) bool { return selects(b.Spec.Selector, d.Spec.Template.Labels) }) {
			return "several replicas need one; with a single replica it would block a drain"
		}
		return ""
	}},
	{"non-isolated-pod", func(w world, d appsv1.Deployment) string {
		if !slices.ContainsFunc(w.policies, func(p networkingv1.NetworkPolicy) bool {
			return selects(&p.Spec.PodSelector, d.Spec.Template.Labels)
		}) {
			return "no NetworkPolicy selects it"
		}
		return ""
	}},
	{"priority-class-name", func(_ world, d appsv1.Deployment) string {
		if d.Spec.Template.Spec.PriorityClassName == "" {
			return "any other pod can preempt it"
		}
		return ""
	}},
	{"metrics without authentication", openMetrics},
}

func container(right func(corev1.Container) bool) func(world, appsv1.Deployment) string {
	return func(_ world, d appsv1.Deployment) string {
		pod := d.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			if !right(c) {
				return "container " + c.Name
			}
		}
		return ""
	}
}

func notRestricted(_ world, d appsv1.Deployment) string {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err.Error()
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	pod := d.Spec.Template.Spec.DeepCopy()
	pod.HostNetwork = false // onTheNodesNetwork looks at it
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &d.Spec.Template.ObjectMeta, pod))
	return result.ForbiddenDetail()
}

func onTheNodesNetwork(_ world, d appsv1.Deployment) string {
	if d.Spec.Template.Spec.HostNetwork {
		return "nobody asked for the node's network"
	}
	return ""
}

// named reports whether a probe calls a port that the container declares. Port numbers,
// which upstream charts use, are accepted.
func named(c corev1.Container, probe *corev1.Probe) bool {
	if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.StrVal == "" {
		return true
	}
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal })
}

func many(d appsv1.Deployment) bool { return d.Spec.Replicas != nil && *d.Spec.Replicas > 1 }

func selects(selector *metav1.LabelSelector, pod map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(pod))
}

func bound(w world, account string) bool {
	return slices.ContainsFunc(w.bindings, func(b rbacv1.ClusterRoleBinding) bool {
		return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Name == account })
	})
}

// openMetrics finds the port on which operators that use controller-runtime serve metrics
// without authentication. Ports 8443 and 10259 require a token.
func openMetrics(_ world, d appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, p := range c.Ports {
			if p.ContainerPort == 8080 {
				return "port " + p.Name + " needs no authentication"
			}
		}
	}
	return ""
}

// releaseRules check all objects of a release. Each returns the names of wrong objects.
var releaseRules = []struct {
	name  string
	wrong func(world) []string
}{
	{"dangling-service", func(w world) []string {
		return whichAre(w.services, func(s corev1.Service) (string, bool) {
			return s.Name, !slices.ContainsFunc(w.deployments, func(d appsv1.Deployment) bool {
				return labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels))
			})
		})
	}},
	{"exposed-services", func(w world) []string {
		return whichAre(w.services, func(s corev1.Service) (string, bool) {
			return s.Name, s.Spec.Type != "" && s.Spec.Type != corev1.ServiceTypeClusterIP
		})
	}},
	{"invalid-target-ports", func(w world) []string {
		return whichAre(w.services, func(s corev1.Service) (string, bool) { return s.Name, !answered(w, s) })
	}},
	{"no Jobs, which would remain after their run", func(w world) []string {
		return whichAre(w.others, func(o object) (string, bool) { return o.Name, o.Kind == "Job" || o.Kind == "CronJob" })
	}},
	{"Secrets without data, which an upgrade would overwrite", func(w world) []string {
		return whichAre(w.others, func(o object) (string, bool) { return o.Name, o.Kind == "Secret" && len(o.Data)+len(o.StringData) > 0 })
	}},
	{"no-extensions-v1beta", func(w world) []string {
		return whichAre(w.others, func(o object) (string, bool) { return o.Name, strings.HasPrefix(o.APIVersion, "extensions/") })
	}},
	{"pdb-max-unavailable, pdb-min-available", func(w world) []string {
		return whichAre(w.budgets, func(b policyv1.PodDisruptionBudget) (string, bool) { return b.Name, !letsOneGo(w, b) })
	}},
	{"pdb-unhealthy-pod-eviction-policy", func(w world) []string {
		return whichAre(w.budgets, func(b policyv1.PodDisruptionBudget) (string, bool) {
			return b.Name, b.Spec.UnhealthyPodEvictionPolicy == nil || *b.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow
		})
	}},
	{"cluster-admin-role-binding", func(w world) []string {
		return whichAre(w.bindings, func(b rbacv1.ClusterRoleBinding) (string, bool) { return b.Name, b.RoleRef.Name == "cluster-admin" })
	}},
	{"wildcard-in-rules", func(w world) []string {
		return rulesThat(w, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs), "*")
		})
	}},
	{"writes to Secrets by name", func(w world) []string { return rulesThat(w, writesAny("secrets")) }},
	{"writes to webhook configurations by name", func(w world) []string {
		return rulesThat(w, writesAny("mutatingwebhookconfigurations", "validatingwebhookconfigurations"))
	}},
	{"ServiceAccounts without a mounted token", func(w world) []string {
		return whichAre(w.accounts, func(a corev1.ServiceAccount) (string, bool) {
			ours := a.Labels["app.kubernetes.io/part-of"] == "mlbatch"
			return a.Name, ours && (a.AutomountServiceAccountToken == nil || *a.AutomountServiceAccountToken)
		})
	}},
}

// letsOneGo reports whether a node with a pod of the budget can be drained.
func letsOneGo(w world, b policyv1.PodDisruptionBudget) bool {
	for _, d := range w.deployments {
		if !selects(b.Spec.Selector, d.Spec.Template.Labels) {
			continue
		}
		replicas := int(ptr.Deref(d.Spec.Replicas, 1))
		least, err1 := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(b.Spec.MinAvailable, intstr.FromInt32(0)), replicas, true)
		most, err2 := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(b.Spec.MaxUnavailable, intstr.FromInt32(1)), replicas, true)
		if err1 != nil || err2 != nil || least >= replicas || most < 1 {
			return false
		}
	}
	return true
}

func whichAre[T any](all []T, wrong func(T) (string, bool)) []string {
	var names []string
	for _, one := range all {
		if name, is := wrong(one); is {
			names = append(names, name)
		}
	}
	return names
}

func rulesThat(w world, wrong func(rbacv1.PolicyRule) bool) []string {
	return whichAre(w.roles, func(r rbacv1.ClusterRole) (string, bool) { return r.Name, slices.ContainsFunc(r.Rules, wrong) })
}

// writesAny reports whether a rule allows changes to any object of a resource. It does not
// check create, which cannot be restricted by name.
func writesAny(resources ...string) func(rbacv1.PolicyRule) bool {
	return func(rule rbacv1.PolicyRule) bool {
		return len(rule.ResourceNames) == 0 &&
			slices.ContainsFunc(resources, func(r string) bool { return slices.Contains(rule.Resources, r) }) &&
			slices.ContainsFunc([]string{"update", "patch", "delete", "deletecollection"}, func(v string) bool { return slices.Contains(rule.Verbs, v) })
	}
}

// answered reports whether a pod has the target ports of a Service.
func answered(w world, s corev1.Service) bool {
	for _, port := range s.Spec.Ports {
		if !slices.ContainsFunc(w.deployments, func(d appsv1.Deployment) bool { return hasPort(d, port) }) {
			return false
		}
	}
	return true
}

func hasPort(d appsv1.Deployment, to corev1.ServicePort) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.Name != "" && p.Name == to.TargetPort.StrVal || p.ContainerPort == to.TargetPort.IntVal
		})
	})
}

// excused are rules that a release breaks on purpose, or because the upstream chart has no
// value for them.
var excused = map[string]string{
	"kueue-manager-pdb pdb-unhealthy-pod-eviction-policy":     "Kueue's chart has no value for it",
	"jobset-controller-pdb pdb-unhealthy-pod-eviction-policy": "JobSet's chart has no value for it",

	"mlbatch-edit writes to Secrets by name":                     "members write their own, in their namespace",
	"kueue-manager-secrets-role writes to Secrets by name":       "a Role of Kueue's chart, in the platform's namespace",
	"jobset-manager-secrets-role writes to Secrets by name":      "a Role of JobSet's chart, in the platform's namespace",
	"jobset-controller writes to webhook configurations by name": "of JobSet's chart; off by default",
	"lws-manager-role writes to Secrets by name":                 "of LeaderWorkerSet's chart; off by default, and docs/install.md says so",
	"lws-manager-role writes to webhook configurations by name":  "of LeaderWorkerSet's chart; off by default",
}

// releases are the combinations of values to test.
func releases(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, pattern := range []string{"testdata/mlbatch/*.in.yaml", "../setup/profiles/*.yaml"} {
		for _, file := range must(filepath.Glob(pattern))(t) {
			all[filepath.Base(file)] = values(t, must(os.ReadFile(file))(t))
		}
	}
	all["production, every part"] = chartutil.CoalesceTables(
		values(t, must(os.ReadFile("../setup/profiles/production.yaml"))(t)), all["every-part.yaml"])
	for _, part := range append([]string{"appwrapper"}, thinCharts...) {
		for _, file := range must(filepath.Glob(filepath.Join(ours[part], "*.in.yaml")))(t) {
			if filepath.Base(file) == "empty-sections.in.yaml" {
				continue // tests empty resources and priorities
			}
			all[part+"/"+filepath.Base(file)] = alone(part, values(t, must(os.ReadFile(file))(t)))
		}
	}
	return all
}

// asksFor: some control planes cannot reach the network of pods.
func asksFor(release, broken string) bool {
	return filepath.Base(release) == "pods.in.yaml" && broken == "host-network"
}

func TestEveryReleaseIsHardened(t *testing.T) {
	needed := map[string]bool{}
	for name, in := range releases(t) {
		t.Run(name, func(t *testing.T) {
			rendered, err := renderLight(t, here(t), "mlbatch", in)
			if err != nil {
				t.Fatal(err)
			}
			blame := func(who, rule, wrong string) {
				if excused[who+" "+rule] != "" {
					needed[who+" "+rule] = true
					return
				}
				t.Errorf("%s: %s: %s", who, rule, wrong)
			}
			w := build(t, rendered.Manifest)
			for _, d := range w.deployments {
				for _, rule := range rules {
					if wrong := rule.wrong(w, d); wrong != "" && !asksFor(name, rule.name) {
						blame(d.Name, rule.name, wrong)
					}
				}
			}
			for _, rule := range releaseRules {
				for _, who := range rule.wrong(w) {
					blame(who, rule.name, "it breaks the rule")
				}
			}
		})
	}
	for excuse := range excused {
		if !needed[excuse] {
			t.Errorf("the excuse for %s is no longer needed", excuse)
		}
	}
}

// TestProductionProfileSurvivesANode: every part has a second replica, which takes over.
func TestProductionProfileSurvivesANode(t *testing.T) {
	rendered, err := render(t, "mlbatch", releases(t)["production, every part"])
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, rendered.Manifest)
	configs := map[string]string{
		"kueue-controller-manager":      find(t, all, "ConfigMap/kueue-manager-config").Data["controller_manager_config.yaml"],
		"appwrapper-controller-manager": find(t, all, "ConfigMap/appwrapper-operator-config").Data["config.yaml"],
		"codeflare-controller-manager":  find(t, all, "ConfigMap/codeflare-config").Data["config.yaml"],
		"scheduler-plugins-scheduler":   find(t, all, "ConfigMap/scheduler-config").Data["scheduler-config.yaml"],
		"jobset-controller":             find(t, all, "ConfigMap/jobset-controller-config").Data["controller_manager_config.yaml"],
		"lws-controller-manager":        find(t, all, "ConfigMap/lws-manager-config").Data["controller_manager_config.yaml"],
	}
	deployments := build(t, rendered.Manifest).deployments
	for _, d := range deployments {
		for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			if !leavesWithin(30, taint, d) {
				t.Errorf("the pods of %s are replaced only after five minutes if their node has the taint %s", d.Name, taint)
			}
		}
		if d.Name == "scheduler-plugins-controller" {
			continue // reports the status of PodGroups, which nothing waits for
		}
		if ptr.Deref(d.Spec.Replicas, 1) != 2 {
			t.Errorf("%s does not have 2 replicas", d.Name)
		}
		if !elects(t, configs[d.Name], d.Spec.Template.Spec.Containers[0].Args) {
			t.Errorf("%s has no leader election", d.Name)
		}
	}
	if len(deployments) != 9 {
		t.Errorf("%d parts, want 9", len(deployments))
	}
}

func leavesWithin(seconds int64, taint string, d appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Tolerations, func(o corev1.Toleration) bool {
		return o.Key == taint && o.Effect == corev1.TaintEffectNoExecute && o.TolerationSeconds != nil && *o.TolerationSeconds <= seconds
	})
}

func elects(t *testing.T, config string, args []string) bool {
	t.Helper()
	var how struct {
		LeaderElection    struct{ LeaderElect bool }    // upstream's
		ControllerManager struct{ LeaderElection bool } // our controllers'
	}
	if err := yaml.Unmarshal([]byte(config), &how); err != nil {
		t.Fatal(err)
	}
	return how.LeaderElection.LeaderElect || how.ControllerManager.LeaderElection ||
		slices.Contains(args, "--leader-elect") || slices.Contains(args, "--enable-leader-election=true")
}
