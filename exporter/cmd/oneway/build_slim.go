//go:build slim

package main

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/serve/httpd"
)

// commands register the commands of this build.
func commands() []func(*kingpin.Application) {
	return []func(*kingpin.Application){
		agentCommand, checkConfigCommand, healthyCommand, targetsCommand, reflectCommand, loadServerCommand, tokenCommand, maintenanceCommand, lightProbeCommands, testCommand, voiceCommand, versionCommand,
	}
}

// webFlags adds the flags of the web server. Those without a function are there so that the error can say it.
func webFlags(cmd *kingpin.CmdClause) *httpd.Flags {
	return &httpd.Flags{
		WebListenAddresses: cmd.Flag("web.listen-address", "Address of /metrics and of the JSON documents; repeatable.").Default(":" + hostport.Agent).Strings(),
		WebSystemdSocket:   cmd.Flag("web.systemd-socket", "Not in this build (slim).").Hidden().Bool(),
		WebConfigFile:      cmd.Flag("web.config.file", "Not in this build (slim).").Hidden().String(),
	}
}

// lacking returns the error of a command that this build lacks.
func lacking(args []string) error {
	if slices.Contains([]string{"calibrate", "report", "trends", "compare", "man", "verify"}, args[0]) {
		return fmt.Errorf("this build (slim) lacks the command %s; another host's oneway has it", args[0])
	}
	return nil
}
