//go:build !slim

package main

import (
	_ "time/tzdata" // zones of calendar.zone and --timezone: a container has no zone database

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/serve/httpd"
)

// commands register the commands of this build.
func commands() []func(*kingpin.Application) {
	return []func(*kingpin.Application){
		agentCommand, checkConfigCommand, healthyCommand, targetsCommand, reflectCommand, loadServerCommand, tokenCommand, maintenanceCommand, lightProbeCommands, testCommand, calibrateCommand, voiceCommand, reportCommand, trendsCommand, compareCommand, manCommand, verifyCommand, versionCommand,
	}
}

// webFlags adds the flags of the web server.
func webFlags(cmd *kingpin.CmdClause) *httpd.Flags {
	return kingpinflag.AddFlags(cmd, ":"+hostport.Agent)
}

// lacking returns the error of a command that this build lacks: it has all.
func lacking([]string) error { return nil }
