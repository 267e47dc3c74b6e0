package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDeploymentHasWhatItsBuildsSet: the version of the first heading of CHANGELOG.md, the user of the images, and the architectures of packages
// stand by hand in files and pages that no build writes.
func TestDeploymentHasWhatItsBuildsSet(t *testing.T) {
	the := func(file, pattern string) string {
		t.Helper()
		m := regexp.MustCompile("(?m)" + pattern).FindStringSubmatch(read(t, filepath.Join(root, file)))
		if m == nil {
			t.Fatalf("%s has no line that is %s", file, pattern)
		}
		return m[1]
	}
	const openwrt = "exporter/doc/openwrt.md"
	version, user := the("CHANGELOG.md", `^## ([0-9.]+)`), the("deploy/images/main.go", `^const user = ([0-9]+)$`)
	deb := fmt.Sprintf("oneway_%s-%s_amd64.deb", version, the("deploy/release/packages.sh", `^export RELEASE=([0-9]+) `))
	type place struct{ file, text string }
	places := []place{
		{"deploy/compose/.env", "ONEWAY_IMAGE=oneway:" + version + "\n"},
		{"deploy/ansible/inventory.yml", deb},
		{"exporter/cmd/oneway/verify.go", deb},
		{"deploy/compose/compose.yaml", "uid=" + user + ","},
		{"deploy/kubernetes/oneway/templates/workload.yaml", "runAsUser: " + user + "\n"},
		{"deploy/kubernetes/oneway/templates/workload.yaml", "runAsGroup: " + user + "\n"},
		{"deploy/kubernetes/oneway/templates/workload.yaml", "fsGroup: " + user + "\n"},
		{"deploy/kubernetes/oneway/templates/NOTES.txt", "User " + user + " "},
		{"deploy/kubernetes/oneway/values.yaml", "must belong to user " + user + "."},
		{"exporter/doc/kubernetes.md", "run as user " + user + " "},
		{"exporter/doc/install.md", "--tmpfs=/run/oneway:uid=" + user + " "},
		{"exporter/doc/install.md", "runs as user " + user + ","},
		{"exporter/doc/install.md", "`chown -R " + user + " /etc/oneway`"},
	}
	for architecture := range strings.FieldsSeq(the("deploy/openwrt/build.sh", `\|\| set -- (.*)$`)) {
		places = append(places, place{openwrt, architecture})
	}
	for architecture := range strings.FieldsSeq(the("deploy/release/arguments.sh", `\|\| set -- (.*)$`)) {
		places = append(places, place{"deploy/images/main.go", fmt.Sprintf("\t%q:", architecture)}, place{"exporter/doc/install.md", strings.Replace(architecture, "arm7", "armv7", 1)})
	}
	for _, p := range places {
		if !strings.Contains(read(t, filepath.Join(root, p.file)), p.text) {
			t.Errorf("%s has no %q", p.file, p.text)
		}
	}
}
