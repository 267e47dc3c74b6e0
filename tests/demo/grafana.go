package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const datasource = `apiVersion: 1
datasources:
  - {name: Prometheus, uid: oneway-prometheus, type: prometheus, access: proxy, url: "%s", isDefault: true}
`

const provider = `apiVersion: 1
providers:
  - {name: oneway, type: file, folder: oneway, options: {path: "%s"}}
`

// startGrafana starts the Grafana of GRAFANA_HOME with oneway's dashboards.
func (s *stack) startGrafana(ctx context.Context) error {
	home := os.Getenv("GRAFANA_HOME")
	if home == "" {
		return nil
	}
	dashboards, err := filepath.Abs("grafana-dashboards/dashboards")
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "grafana")
	for name, text := range map[string]string{
		"datasources/oneway.yml": fmt.Sprintf(datasource, s.prometheus),
		"dashboards/oneway.yml":  fmt.Sprintf(provider, dashboards),
	} {
		file := filepath.Join(dir, "provisioning", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	host, port, _ := strings.Cut(address, ":")
	program := filepath.Join(home, "bin", "grafana")
	cmd := exec.CommandContext(ctx, program, "server", "--homepath="+home)
	cmd.Cancel = func() error { return nil } // stop ends it in order
	cmd.Env = append(os.Environ(),
		"GF_SERVER_HTTP_ADDR="+host, "GF_SERVER_HTTP_PORT="+port,
		"GF_PATHS_DATA="+filepath.Join(dir, "data"), "GF_PATHS_LOGS="+filepath.Join(dir, "logs"),
		"GF_PATHS_PROVISIONING="+filepath.Join(dir, "provisioning"),
		"GF_AUTH_ANONYMOUS_ENABLED=true", "GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer",
		"GF_ANALYTICS_REPORTING_ENABLED=false", "GF_ANALYTICS_CHECK_FOR_UPDATES=false", "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES=false",
		"GF_PLUGINS_PREINSTALL_DISABLED=true", "GF_PLUGINS_PLUGIN_ADMIN_ENABLED=false", "GF_NEWS_NEWS_FEED_ENABLED=false",
		"GF_SECURITY_DISABLE_GRAVATAR=true", "GF_SNAPSHOTS_EXTERNAL_ENABLED=false")
	step("starting Grafana of GRAFANA_HOME with grafana-dashboards/dashboards")
	if err := s.start("grafana", cmd); err != nil {
		return err
	}
	s.grafana = "http://" + address
	return s.untilReady(ctx, s.grafana+"/api/health", "Grafana")
}

// announce prints the addresses while the demo keeps running.
func (s *stack) announce(out io.Writer) {
	fmt.Fprintf(out, "\n  client agent   %s\n  server agent   %s\n  Prometheus     %s\n", s.agents["client"], s.agents["server"], s.prometheus)
	if s.grafana != "" {
		fmt.Fprintf(out, "  Grafana        %s/d/oneway-path\n", s.grafana)
	}
	fmt.Fprintln(out, "\nCtrl-C ends everything.")
}
