package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/mesh"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/families"
	"oneway.example/exporter/serve/httpd"
)

const targetsHelp = `Print the agents of a mesh as targets of Prometheus.

The output is for file_sd_configs: the hosts of the meshes of a configuration, each once,
with the port of the agents' web servers. For relabel_configs, __meta_oneway_host is the
name of a host and __meta_oneway_label_NAME its label NAME.

Examples:
  oneway targets /etc/oneway/oneway.yml > /etc/prometheus/oneway-targets.json
  oneway targets --port 443 oneway.yml

Exit status: 0 printed, 1 an error in a file, or no mesh, 2 wrong usage.`

func targetsCommand(app *kingpin.Application) {
	var file string
	var port uint16
	cmd := app.Command("targets", targetsHelp)
	cmd.Arg("file", "Configuration file of any host of the mesh.").Required().StringVar(&file)
	cmd.Flag("port", "Port of the agents' web servers.").Default(hostport.Agent).Uint16Var(&port)
	cmd.Action(action(func() error {
		if port == 0 {
			return usageError{errors.New("--port is 0; it must be 1 to 65535")}
		}
		return printTargets(os.Stdout, file, port)
	}))
}

func printTargets(out io.Writer, file string, port uint16) error {
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	hosts, found := mesh.Hosts(c, families.All(), families.Tables())
	switch {
	case len(found) > 0:
		return found
	case len(hosts) == 0:
		return fmt.Errorf("targets: %s has no mesh; it must have one, see exporter/doc/mesh.md", file)
	}
	var groups []httpd.TargetGroup
	for _, h := range hosts {
		name, _, err := hostport.Split(h.Address, 0)
		if err != nil {
			return fmt.Errorf("targets: address %q: %w", h.Address, err)
		}
		g := httpd.NewTargetGroup(net.JoinHostPort(name, strconv.Itoa(int(port))), h.Labels)
		g.Labels["__meta_oneway_host"] = h.Name
		groups = append(groups, g)
	}
	text, err := json.MarshalIndent(groups, "", "  ")
	if err != nil {
		return fmt.Errorf("targets: encode: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s\n", text); err != nil {
		return fmt.Errorf("targets: print: %w", err)
	}
	return nil
}
