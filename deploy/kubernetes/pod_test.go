package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// buildProgram builds the program in a directory that user 65532 can read.
func buildProgram(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("not root: only root can become user 65532: sudo make packages-test")
	}
	dir, err := os.MkdirTemp("/tmp", "volume") // t.TempDir is not readable for others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "oneway")
	build := exec.Command("go", "build", "-C", root, "-o", program, "./exporter/cmd/oneway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// TestAgentAcceptsTheConfigurationOfItsVolume: the volume is laid as the kubelet lays it, links included, with its modes and groups,
// and user 65532 checks what is in it.
func TestAgentAcceptsTheConfigurationOfItsVolume(t *testing.T) {
	program := buildProgram(t)
	dir := filepath.Dir(program)
	secrets := map[string]string{"reflector.key": "a secret of some length\n"}
	token := exec.Command(program, "token", "new", "--file="+filepath.Join(dir, "tokens"), "--name=client", "--out="+filepath.Join(dir, "token"))
	if out, err := token.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	secrets["tokens"] = string(read(t, filepath.Join(dir, "tokens")))

	for set, paths := range map[string][]string{
		"node":     {"node-a-to-node-b", "node-a-to-node-c"},
		"pod":      {"to-branch"},
		"operator": nil, // below
	} {
		all := objects(t, set)
		pod := podOf(t, all)
		group, _ := field(pod, "securityContext", "fsGroup").(int)
		mode := modeOf(t, pod)
		if group != 65532 || mode != 0o440 {
			t.Fatalf("%s: the volume has group %d and mode %#o", set, group, mode)
		}
		files := filesOf(t, all)
		if set == "node" {
			maps.Copy(files, secrets)
		}
		if set == "operator" {
			paths = []string{"oneway-1-to-oneway-0", "oneway-1-to-oneway-2"}
			files["oneway.yml"] = strings.Replace(files["oneway.yml"], "mesh:\n", "mesh:\n  self: oneway-1\n", 1)
		}
		volume := writeVolume(t, filepath.Join(dir, set), files, group, mode)
		check := exec.Command(program, "check-config", "--paths", filepath.Join(volume, "oneway.yml"))
		check.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: uint32(group)}}
		out, err := check.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s\n%s", set, err, out, files["oneway.yml"])
		}
		for _, p := range paths {
			if !strings.Contains(string(out), p) {
				t.Errorf("%s: no path %s in\n%s", set, p, out)
			}
		}
	}
}

// writeVolume writes a projected volume: files in a directory of their own, links to them, all of root and the group.
func writeVolume(t *testing.T, dir string, files map[string]string, group int, mode os.FileMode) string {
	t.Helper()
	data := filepath.Join(dir, "..2026_11_30")
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(os.MkdirAll(data, 0o755))
	fail(os.Symlink(filepath.Base(data), filepath.Join(dir, "..data")))
	for name, text := range files {
		file := filepath.Join(data, name)
		fail(os.WriteFile(file, []byte(text), mode))
		fail(os.Chmod(file, mode))
		fail(os.Chown(file, 0, group))
		fail(os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	return dir
}

// TestAgentRunsAsItsPodSays: with the arguments, the user, the read-only root, the volumes and the probe of the container, without any
// capability. Port 862 opens with the setting of the network that the chart gives the pod, and not without it.
func TestAgentRunsAsItsPodSays(t *testing.T) {
	program := buildProgram(t)
	for _, c := range []struct {
		name, set string
		setting   bool
		port      int
		opens     bool
	}{
		{"standard port", "pod", true, 862, true},
		{"standard port without the setting", "pod", false, 862, false},
		{"port of the chart", "operator", true, 8862, true},
	} {
		all := objects(t, c.set)
		pod := podOf(t, all)
		files := filesOf(t, all)
		files["oneway.yml"] = strings.Replace(files["oneway.yml"], "mesh:\n", "mesh:\n  self: oneway-0\n", 1)
		volume := writeVolume(t, filepath.Join(filepath.Dir(program), strings.ReplaceAll(c.name, " ", "-")), files, 65532, modeOf(t, pod))
		container := field(pod, "containers").([]any)[0].(map[string]any)
		var args []string
		for _, a := range container["args"].([]any) {
			args = append(args, a.(string))
		}
		var mounts strings.Builder // of directories that the pod can write to
		for _, m := range container["volumeMounts"].([]any) {
			if at := field(m.(map[string]any), "mountPath").(string); at != "/etc/oneway" && at != "/tmp" {
				fmt.Fprintf(&mounts, "mkdir -p %s\nmount -t tmpfs -o uid=65532,gid=65532,mode=0770 state %[1]s\n", at)
			}
		}
		settings, _ := field(pod, "securityContext", "sysctls").([]any)
		sysctl := ""
		for _, s := range settings {
			if c.setting {
				one := s.(map[string]any)
				sysctl += fmt.Sprintf("echo %s >/proc/sys/%s\n", one["value"], strings.ReplaceAll(one["name"].(string), ".", "/"))
			}
		}
		script := fmt.Sprintf(`set -e
ip link set lo up
%s
for dir in /etc /var/lib /run; do mount -t tmpfs root $dir; done
mkdir -p /etc/oneway
mount --bind %s /etc/oneway
%s
mount -o remount,bind,ro /
for dir in /etc /var/lib /run; do mount -o remount,ro $dir; done
setpriv --reuid=65532 --regid=65532 --clear-groups --no-new-privs --bounding-set=-all %[4]s %[5]s &
for try in $(seq 300); do
  %[4]s healthy --ready >/dev/null 2>&1 && break
  sleep 0.2
done
%[4]s healthy --ready
grep CapBnd /proc/$!/status
grep -q ':%04[6]X 00000000' /proc/net/udp /proc/net/udp6 && echo opened
kill $!
wait`, sysctl, volume, mounts.String(), program, strings.Join(args, " "), c.port)
		out, err := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script).CombinedOutput()
		if opens := strings.Contains(string(out), "\nopened\n"); opens != c.opens || !strings.Contains(string(out), "CapBnd:\t0000000000000000") {
			t.Errorf("%s: port %d opens: %t, want %t: %v\n%s", c.name, c.port, opens, c.opens, err, out)
		}
	}
}

// filesOf is the content of the ConfigMap of the configuration.
func filesOf(t *testing.T, all []object) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, text := range theOne(t, withoutDashboards(all), "ConfigMap")["data"].(map[string]any) {
		files[name] = text.(string)
	}
	return files
}

// modeOf is the mode of the files of the configuration.
func modeOf(t *testing.T, pod map[string]any) os.FileMode {
	t.Helper()
	for _, v := range field(pod, "volumes").([]any) {
		if v := v.(map[string]any); v["name"] == "config" {
			mode, _ := field(v, "projected", "defaultMode").(int)
			return os.FileMode(mode)
		}
	}
	t.Fatal("no volume is config")
	return 0
}

// podOf is the specification of the pods.
func podOf(t *testing.T, all []object) map[string]any {
	t.Helper()
	for _, o := range all {
		if pod, ok := field(o, "spec", "template", "spec").(map[string]any); ok {
			return pod
		}
	}
	t.Fatal("no object makes pods")
	return nil
}

func withoutDashboards(all []object) []object {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool { return strings.Contains(o.name(), "-dashboard-") })
}
