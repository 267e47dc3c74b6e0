package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// result is the text of RESULT.md.
type result struct{ strings.Builder }

func (r *result) row(cells ...any) {
	r.WriteString("|")
	for _, c := range cells {
		fmt.Fprintf(r, " %s |", strings.ReplaceAll(fmt.Sprint(c), "|", "\\|"))
	}
	r.WriteString("\n")
}

func (r *result) table(title string, columns ...any) {
	fmt.Fprintf(r, "\n## %s\n\n", title)
	r.row(columns...)
	r.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
}

// namespaces are the namespaces, with the Pod Security level that each enforces.
var namespaces = map[string]string{"restricted": "restricted", "baseline": "baseline", "privileged": "privileged", "operator": "restricted", "installed": "restricted"}

// namespaceOf is where each set of values is applied.
var namespaceOf = map[string]string{"node": "privileged", "pod": "restricted", "operator": "operator"}

// TestClusterTakesTheChart runs by make deploy-test, which builds a control plane; it writes RESULT.md and the schemas of this server.
func TestClusterTakesTheChart(t *testing.T) {
	bin := os.Getenv("ONEWAY_CLUSTER")
	if bin == "" {
		t.Fatal("ONEWAY_CLUSTER is not set: make cluster-test builds a control plane and sets it; without it: go test -skip TestClusterTakesTheChart")
	}
	begin := time.Now()
	c := startCluster(t, bin)
	var r result
	r.about(t, c)
	c.prepare()
	c.applyAll(&r)
	c.admission(&r)
	c.pods(&r)
	c.refusals(&r)
	c.releases(&r)
	c.page(&r)
	if t.Failed() {
		return
	}
	c.describe()
	fmt.Fprintf(&r, "\nThe test took %.0f s, without the builds.\n", time.Since(begin).Seconds())
	if err := os.WriteFile("RESULT.md", []byte(r.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// about begins the result with the versions.
func (r *result) about(t *testing.T, c *cluster) {
	t.Helper()
	say := func(program string, args ...string) string {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", program, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	var version struct{ GitVersion string }
	if err := c.get("/version", &version); err != nil {
		t.Fatal(err)
	}
	etcd, _, _ := strings.Cut(say(filepath.Join(c.bin, "etcd"), "--version"), "\n")
	fmt.Fprintf(r, "# Last result of `make deploy-test`\n\n%s, commit %s. Kubernetes %s (API server, controller manager, scheduler), %s, %s, Helm %s, %s.\n",
		time.Now().UTC().Format("2006-01-02"), say("git", "rev-parse", "--short=10", "HEAD"), version.GitVersion, strings.Replace(etcd, " Version: ", " ", 1),
		say(filepath.Join(c.bin, "kwok"), "--version"), say("go", "list", "-m", "-f={{.Version}}", "helm.sh/helm/v3"), "CRDs of the types of prometheus-operator "+strings.TrimSpace(string(read(t, filepath.Join(c.bin, "crds/version")))))
	r.WriteString("kwok simulates nodes and containers: no container runs.\n")
}

// prepare makes namespaces, the CRDs of the Prometheus operator, and three nodes.
func (c *cluster) prepare() {
	for name, level := range namespaces {
		c.applied(object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": map[string]any{"pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/warn": level}}}, "")
	}
	crds, err := filepath.Glob(filepath.Join(c.bin, "crds/*.yaml"))
	if err != nil || len(crds) == 0 {
		c.t.Fatal(crds, err)
	}
	for _, file := range crds {
		for _, o := range decode(c.t, string(read(c.t, file))) {
			c.applied(o, "")
		}
	}
	for i := range 3 {
		c.applied(object{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": fmt.Sprintf("node-%d", i), "labels": map[string]any{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": fmt.Sprintf("node-%d", i)}}}, "")
	}
	for namespace := range namespaces { // the admission requires the account, which a controller makes
		c.await("the account of "+namespace, func() error {
			_, err := c.request(http.MethodGet, "/api/v1/namespaces/"+namespace+"/serviceaccounts/default", "", nil)
			return err
		})
	}
}

// applied applies an object that the server must take. The server serves a new CRD a moment later.
func (c *cluster) applied(o object, namespace string) string {
	c.t.Helper()
	var reply string
	var err error
	c.await("the server serves "+o.kind(), func() error {
		if reply, err = c.apply(o, namespace); err != nil && strings.HasPrefix(err.Error(), "404") {
			return err
		}
		return nil
	})
	if err != nil {
		c.t.Errorf("%s %s: %v", o.kind(), o.name(), err)
	}
	return reply
}

// applyAll applies each object of each set of values, with strict validation.
func (c *cluster) applyAll(r *result) {
	r.table("Objects, by server-side apply with `fieldValidation=Strict`", "values", "level of the namespace", "objects", "verdict")
	for _, set := range valueSets {
		count := map[string]int{}
		for _, o := range objects(c.t, set) {
			if reply := c.applied(o, namespaceOf[set]); strings.Contains(reply, "would violate") {
				c.t.Errorf("%s: %s %s: %.500s", set, o.kind(), o.name(), reply)
			}
			count[o.kind()]++
		}
		var all []string
		for _, kind := range slices.Sorted(maps.Keys(count)) {
			all = append(all, fmt.Sprintf("%d %s", count[kind], kind))
		}
		r.row("`testdata/"+set+".yaml`", "`"+namespaces[namespaceOf[set]]+"`", strings.Join(all, ", "), "all accepted")
	}
}

// podObject is the pod of a set of values, which is not stored.
func podObject(t *testing.T, set, name string) object {
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name}, "spec": podOf(t, objects(t, set))}
}

// dryRun asks for a pod without making it.
func (c *cluster) dryRun(o object, namespace string) error {
	delete(o["spec"].(map[string]any), "priorityClassName")      // system-node-critical needs a quota in some namespaces
	o["spec"].(map[string]any)["serviceAccountName"] = "default" // of this namespace
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = c.request(http.MethodPost, collection(o, namespace)+"?dryRun=All&fieldValidation=Strict", "application/json", text)
	return err
}

// admission asks for the pod of each network at each level of Pod Security.
func (c *cluster) admission(r *result) {
	r.table("Pod Security admission", "network", "level", "verdict")
	for _, set := range []string{"node", "pod"} {
		for _, level := range []string{"restricted", "baseline", "privileged"} {
			err := c.dryRun(podObject(c.t, set, "try"), level)
			verdict, want := "accepted", set == "pod" || level == "privileged"
			if err != nil {
				verdict = "refused: " + err.Error()[strings.LastIndex(err.Error(), "forbidden: ")+len("forbidden: "):]
			}
			if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "host namespaces (hostNetwork=true)") {
				c.t.Errorf("network of the %s at level %s: %v", set, level, err)
			}
			r.row(set, "`"+level+"`", verdict)
		}
	}
}

// pods waits until the controllers have made the pods, and kwok has them ready.
func (c *cluster) pods(r *result) {
	r.table("Pods on 3 nodes", "workload", "pods that are ready", "nodes with one")
	for _, set := range valueSets {
		var workload object
		for _, o := range objects(c.t, set) {
			if o.kind() == "DaemonSet" || o.kind() == "StatefulSet" {
				workload = o
			}
		}
		namespace := namespaceOf[set]
		nodes := map[string]bool{}
		ready := 0
		c.await("the pods of "+set, func() error {
			var err error
			ready, nodes, err = c.ready(namespace, workload.kind())
			if err == nil && (ready != 3 || len(nodes) != 3) {
				err = fmt.Errorf("%d pods are ready on %d nodes, want 3", ready, len(nodes))
			}
			return err
		})
		r.row(fmt.Sprintf("%s of `%s.yaml`, level `%s`", workload.kind(), set, namespaces[namespace]), ready, len(nodes))
	}
}

// ready counts the ready pods of a kind's owner, and their nodes.
func (c *cluster) ready(namespace, owner string) (int, map[string]bool, error) {
	var pods struct {
		Items []struct {
			Metadata struct{ OwnerReferences []struct{ Kind string } }
			Spec     struct{ NodeName string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	err := c.get("/api/v1/namespaces/"+namespace+"/pods", &pods)
	count, nodes := 0, map[string]bool{}
	for _, p := range pods.Items {
		for _, condition := range p.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" && p.Metadata.OwnerReferences[0].Kind == owner {
				count++
				nodes[p.Spec.NodeName] = true
			}
		}
	}
	return count, nodes, err
}

// refusals are faults that the server must name.
func (c *cluster) refusals(r *result) {
	r.table("Refused", "object", "reply of the server")
	node := func(change func(spec map[string]any)) object {
		all := objects(c.t, "node")
		change(podOf(c.t, all))
		return theOne(c.t, all, "DaemonSet")
	}
	monitor := func(change func(spec map[string]any)) object {
		o := theOne(c.t, objects(c.t, "operator"), "PodMonitor")
		change(o["spec"].(map[string]any))
		return o
	}
	for _, one := range []struct {
		what, want string
		object     object
	}{
		{"a misspelled field of the pods", `field not declared in schema`, node(func(s map[string]any) { s["hostNetwerk"] = true })},
		{"a misspelled field of a PodMonitor", `field not declared in schema`, monitor(func(s map[string]any) { s["selektor"] = true })},
		{"`interval: fifteen` of a PodMonitor", "should match", monitor(func(s map[string]any) {
			s["podMetricsEndpoints"].([]any)[0].(map[string]any)["interval"] = "fifteen"
		})},
		{"`net.ipv4.ip_unprivileged_port_start` with the network of the node", "may not be specified when 'hostNetwork' is true", node(func(s map[string]any) {
			s["securityContext"].(map[string]any)["sysctls"] = []any{map[string]any{"name": "net.ipv4.ip_unprivileged_port_start", "value": "862"}}
		})},
	} {
		_, err := c.apply(one.object, "privileged")
		if err == nil || !strings.Contains(err.Error(), one.want) {
			c.t.Errorf("%s: %v, want %q", one.what, err, one.want)
			continue
		}
		r.row(one.what, err)
	}
}

// releases installs by Helm, upgrades to another configuration, and removes it.
func (c *cluster) releases(r *result) {
	r.table("Helm", "command", "result")
	const namespace = "installed"
	values := []string{"oneway", made.archive, "--namespace=" + namespace, "--values=testdata/operator.yaml", "--wait", "--timeout=5m"}
	for _, step := range []struct {
		args    []string
		objects int
	}{
		{append([]string{"install"}, values...), len(objects(c.t, "operator"))},
		{append([]string{"upgrade", "--set=config.mesh.shape=ring"}, values...), len(objects(c.t, "operator"))},
		{[]string{"uninstall", "oneway", "--namespace=" + namespace, "--wait", "--timeout=5m"}, 0},
	} {
		if out, err := c.helm(step.args...); err != nil {
			c.t.Errorf("%v: %s", err, out)
			return
		}
		var found []string
		c.await("the objects of Helm after "+step.args[0], func() error {
			var err error
			found, err = c.managed(namespace)
			if err == nil && len(found) != step.objects {
				err = fmt.Errorf("%d objects, want %d: %v", len(found), step.objects, found)
			}
			return err
		})
		r.row("`helm "+step.args[0]+" --wait`", fmt.Sprintf("%d objects", len(found)))
	}
}

// page runs the commands of kubernetes.md in their order, as its reader types them, with the values that the page shows.
func (c *cluster) page(r *result) {
	r.table("Commands of kubernetes.md", "command", "result")
	text := string(read(c.t, root+"/exporter/doc/kubernetes.md"))
	_, values, _ := strings.Cut(text, "```yaml\n")
	values, _, _ = strings.Cut(values, "```")
	c.write("values.yaml", values)
	c.write("reflector.key", strings.Repeat("k", 32))
	words := strings.NewReplacer("oneway-VERSION.tgz", made.archive, "REGISTRY", "registry.example.net")
	count := 0
	for line := range strings.Lines(text) {
		command := strings.TrimSpace(line)
		if !strings.HasPrefix(line, "    ") || !strings.HasPrefix(command, "kubectl ") && !strings.HasPrefix(command, "helm ") {
			continue
		}
		count++
		shell := exec.CommandContext(c.t.Context(), "sh", "-c", words.Replace(command))
		shell.Dir = c.dir
		shell.Env = append(os.Environ(), "KUBECONFIG="+c.config, "PATH="+c.bin+":"+filepath.Dir(made.helm)+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		if err != nil {
			c.t.Errorf("kubernetes.md: %s: %v\n%s", command, err, out)
			continue
		}
		first, _, _ := strings.Cut(string(out), "\n")
		r.row("`"+command+"`", first)
	}
	if count < 6 {
		c.t.Errorf("kubernetes.md has %d commands: fewer than there are", count)
	}
}

// managed lists the objects of a namespace that Helm manages.
func (c *cluster) managed(namespace string) (found []string, err error) {
	for _, list := range []string{
		"/api/v1/namespaces/%s/configmaps", "/api/v1/namespaces/%s/services", "/api/v1/namespaces/%s/serviceaccounts", "/apis/apps/v1/namespaces/%s/daemonsets",
		"/apis/apps/v1/namespaces/%s/statefulsets", "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies", "/apis/monitoring.coreos.com/v1/namespaces/%s/podmonitors",
		"/apis/monitoring.coreos.com/v1/namespaces/%s/prometheusrules", "/apis/monitoring.coreos.com/v1alpha1/namespaces/%s/scrapeconfigs",
	} {
		var all struct{ Items []object }
		err = errors.Join(err, c.get(fmt.Sprintf(list, namespace)+"?labelSelector=app.kubernetes.io/managed-by=Helm", &all))
		for _, o := range all.Items {
			found = append(found, o.name())
		}
	}
	return found, err
}

// describe writes the schemas of the kinds that the chart uses: of the server, and of the oldest Kubernetes that the chart permits.
func (c *cluster) describe() {
	var server, oldest kinds
	for _, group := range []string{"api/v1", "apis/apps/v1", "apis/networking.k8s.io/v1", "apis/monitoring.coreos.com/v1", "apis/monitoring.coreos.com/v1alpha1"} {
		text, err := c.request(http.MethodGet, "/openapi/v3/"+group, "", nil)
		if err == nil {
			err = server.read([]byte(text))
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(c.t.Context(), "go", "mod", "download", "-json", oldestModule).Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	for _, group := range []string{"api__v1", "apis__apps__v1", "apis__networking.k8s.io__v1"} {
		if err := oldest.read(read(c.t, filepath.Join(module.Dir, "api/openapi-spec/v3", group+"_openapi.json"))); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, set := range valueSets {
		for _, o := range objects(c.t, set) {
			version := fmt.Sprint(o["apiVersion"])
			err := server.add(version, o.kind())
			if !strings.Contains(version, operatorGroup) {
				err = errors.Join(err, oldest.add(version, o.kind()))
			}
			if err != nil {
				c.t.Error(err)
			}
		}
	}
	for file, k := range map[string]*kinds{schemasFile: &server, oldestSchemasFile: &oldest} {
		text, err := k.packed()
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		if err != nil {
			c.t.Error(err)
		}
	}
}
