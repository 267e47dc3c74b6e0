// Package compose loads deploy/compose as Docker Compose does. run.sh starts it.
package compose

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const directory = "../../deploy/compose"

// load is what `docker compose` reads; an unknown key, an unset variable or a missing volume is an error.
func load(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{filepath.Join(directory, "compose.yaml")}, cli.WithWorkingDirectory(directory),
		cli.WithEnvFiles(filepath.Join(directory, ".env")), cli.WithDotEnv, cli.WithProfiles(profiles))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOnlyTheReflectorIsPublished(t *testing.T) {
	var published []string
	for name, s := range load(t, "*").Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				published = append(published, name+" "+p.Published+"/"+p.Protocol)
			}
		}
		if s.Privileged || s.NetworkMode == "host" || s.Image == "" || strings.Contains(s.Image, "$") {
			t.Errorf("%s: image %q, network %q, privileged %v", name, s.Image, s.NetworkMode, s.Privileged)
		}
		if name == "agent" || name == "peer" {
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 {
				t.Errorf("%s: read-only %v, capabilities less %q, more %q", name, s.ReadOnly, s.CapDrop, s.CapAdd)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s: %s: %v, read-only %v", name, v.Source, err, v.ReadOnly)
			}
		}
	}
	if !slices.Equal(published, []string{"agent 8862/udp"}) {
		t.Errorf("published beyond this host: %q", published)
	}
}

func TestPartsStartAlone(t *testing.T) {
	for profiles, want := range map[string]string{
		"":           "agent peer",
		"chrony":     "agent chrony peer",
		"prometheus": "agent alertmanager peer prometheus",
		"influxdb":   "agent influxdb influxdb-setup peer telegraf",
		"grafana":    "agent grafana peer",
	} {
		got := load(t, profiles).ServiceNames()
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("profile %q starts %q, want %q", profiles, got, want)
		}
	}
}
