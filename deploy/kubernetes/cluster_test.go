package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cluster is a control plane on the loopback interface: etcd, the API server, the controllers, the scheduler, and kwok, which simulates nodes and
// the containers on them.
type cluster struct {
	t                     *testing.T
	bin, dir, url, config string
	client                *http.Client
}

const adminToken = "a-token-of-this-test" //nolint:gosec // of a server on loopback, for the time of a test

// startCluster starts the programs of a directory. They end with the test.
func startCluster(t *testing.T, bin string) *cluster {
	c := &cluster{t: t, bin: bin, dir: t.TempDir()}
	c.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the server makes its certificate at its start
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c.write("account.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	c.write("tokens.csv", adminToken+",admin,admin,system:masters\n")
	etcd, peers, server := port(t), port(t), port(t)
	c.url = "https://127.0.0.1:" + server
	c.config = c.write("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
`, c.url, adminToken))

	c.start("etcd", "--data-dir="+filepath.Join(c.dir, "etcd"), "--listen-client-urls=http://127.0.0.1:"+etcd, "--advertise-client-urls=http://127.0.0.1:"+etcd,
		"--listen-peer-urls=http://127.0.0.1:"+peers, "--initial-advertise-peer-urls=http://127.0.0.1:"+peers, "--initial-cluster=default=http://127.0.0.1:"+peers)
	c.start("kube-apiserver", "--etcd-servers=http://127.0.0.1:"+etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+server,
		"--cert-dir="+filepath.Join(c.dir, "certificates"), "--token-auth-file="+filepath.Join(c.dir, "tokens.csv"), "--authorization-mode=RBAC", "--endpoint-reconciler-type=none",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+filepath.Join(c.dir, "account.key"),
		"--service-account-signing-key-file="+filepath.Join(c.dir, "account.key"), "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true")
	c.await("the API server", func() error {
		_, err := c.request(http.MethodGet, "/readyz", "", nil)
		return err
	})
	c.start("kube-controller-manager", "--kubeconfig="+c.config, "--service-account-private-key-file="+filepath.Join(c.dir, "account.key"), "--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port="+port(t), "--cert-dir="+filepath.Join(c.dir, "controllers"))
	c.start("kube-scheduler", "--kubeconfig="+c.config, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+port(t), "--cert-dir="+filepath.Join(c.dir, "scheduler"))
	c.start("kwok", "--kubeconfig="+c.config, "--manage-all-nodes=true", "--config="+filepath.Join(bin, "stages.yaml"), "--server-address=127.0.0.1:"+port(t))
	return c
}

// port is a free TCP port.
func port(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, p, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (c *cluster) write(name, text string) string {
	file := filepath.Join(c.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// start starts a program, whose last lines are printed if the test fails.
func (c *cluster) start(name string, args ...string) {
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	program := exec.Command(filepath.Join(c.bin, name), args...)
	program.Stdout, program.Stderr, program.Dir = log, log, c.dir
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := program.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && c.t.Failed() {
			c.t.Logf("%s: ...%s", name, text[max(0, len(text)-1500):])
		}
	})
}

// await waits for a condition. A machine with other work needs minutes.
func (c *cluster) await(what string, done func() error) {
	c.t.Helper()
	end := time.Now().Add(5 * time.Minute)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(200 * time.Millisecond) // the conditions span several objects, so the server has no one event for them
	}
}

// request sends a request; a reply of 400 or more is an error with its text. Warnings of the server precede the body of the reply.
func (c *cluster) request(method, path, contentType string, body []byte) (string, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	reply, err := c.client.Do(r)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return "", err
	}
	if reply.StatusCode >= http.StatusBadRequest {
		var status struct{ Message string }
		if json.Unmarshal(text, &status) == nil && status.Message != "" {
			text = []byte(status.Message)
		}
		return "", fmt.Errorf("%s: %s", reply.Status, text)
	}
	warnings := strings.Join(reply.Header.Values("Warning"), "\n")
	return warnings + string(text), nil
}

// resources are the names of the kinds in paths.
var resources = map[string]string{
	"ConfigMap": "configmaps", "CustomResourceDefinition": "customresourcedefinitions", "DaemonSet": "daemonsets", "Namespace": "namespaces",
	"NetworkPolicy": "networkpolicies", "Node": "nodes", "Pod": "pods", "PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules", "ScrapeConfig": "scrapeconfigs",
	"Secret": "secrets", "Service": "services", "ServiceAccount": "serviceaccounts", "StatefulSet": "statefulsets",
}

// collection is where the API has the objects of a kind.
func collection(o object, namespace string) string {
	version := fmt.Sprint(o["apiVersion"])
	base := "/apis/" + version
	if !strings.Contains(version, "/") {
		base = "/api/" + version
	}
	if namespace != "" {
		base += "/namespaces/" + namespace
	}
	return base + "/" + resources[o.kind()]
}

// apply applies an object on the server, with strict validation of its fields.
func (c *cluster) apply(o object, namespace string) (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	return c.request(http.MethodPatch, collection(o, namespace)+"/"+o.name()+"?fieldManager=test&fieldValidation=Strict&force=true", "application/apply-patch+yaml", text)
}

// helm runs Helm with this cluster.
func (c *cluster) helm(args ...string) (string, error) {
	return helm(append(args, "--kubeconfig="+c.config)...)
}

// get decodes a reply.
func (c *cluster) get(path string, into any) error {
	text, err := c.request(http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}
