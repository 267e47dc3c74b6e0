package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

// helpTemplate is kingpin's usage template, but for the list of commands, which has one line each. It calls functions alone, no methods:
// deploy/openwrt/build.sh says why.
const helpTemplate = `{{define "Command" -}}
{{with .|FlagSummary}} {{.}}{{end -}}
{{range .Args}}{{if not .Hidden}} {{if .Required}}<{{.Name}}>{{else}}[<{{.Name}}>]{{end}}{{if .Value|IsCumulative}}...{{end}}{{end}}{{end -}}
{{end -}}

{{define "Usage" -}}
{{template "Command" .}}{{if .Commands}} <command> [<args> ...]{{end}}
{{if .Help}}
{{.Help|Wrap 0 -}}
{{end -}}
{{end -}}

{{if .Context.SelectedCommand -}}
usage: {{.App.Name}} {{.Context.SelectedCommand}}{{template "Usage" .Context.SelectedCommand}}
{{- if .Context.SelectedCommand.Commands}}
Commands:
{{.Context.SelectedCommand|Flattened|CommandsToTwoColumns|FormatTwoColumns}}{{end}}
{{else -}}
usage: {{.App.Name}}{{template "Usage" .App}}
Commands:
{{.App|Flattened|CommandsToTwoColumns|FormatTwoColumns}}
Examples:

  oneway reflect
  oneway probe 192.0.2.7
  oneway agent --config.file=/etc/oneway/oneway.yml

"oneway COMMAND --help" has the flags and examples of a command.

{{end -}}
{{if .Context.Flags -}}
Flags:
{{.Context.Flags|FlagsToTwoColumns|FormatTwoColumns}}
{{end -}}
{{if .Context.Args -}}
Args:
{{.Context.Args|ArgsToTwoColumns|FormatTwoColumns}}
{{end -}}
`

// shortHelp makes --help list the commands below with one line each.
func shortHelp(app *kingpin.Application) {
	app.UsageFuncs(template.FuncMap{
		"CommandsToTwoColumns": summaries,
		"FlagSummary":          func(m interface{ FlagSummary() string }) string { return m.FlagSummary() },
		"Flattened": func(m interface{ FlattenedCommands() []*kingpin.CmdModel }) []*kingpin.CmdModel {
			return m.FlattenedCommands()
		},
	}).UsageTemplate(helpTemplate)
}

// summaries are the commands, without the hidden ones, with the first sentence of their help.
func summaries(all []*kingpin.CmdModel) (rows [][2]string) {
	for _, c := range all {
		if !c.Hidden {
			first, _, _ := strings.Cut(c.Help, "\n")
			rows = append(rows, [2]string{c.FullCommand, first})
		}
	}
	return rows
}

// notInOverview are the commands that people rarely type: --help has all.
func notInOverview() []string {
	return []string{"help", "version", "healthy", "verify", "maintenance list", "maintenance end"}
}

// overview writes what the program prints without arguments: its commands, and where to go on.
func overview(out io.Writer, app *kingpin.ApplicationModel) error {
	var page strings.Builder
	fmt.Fprintf(&page, "Measure network paths: one-way delay, loss, voice quality, throughput.\n\nusage: oneway <command> [<args> ...]\n\n")
	for _, row := range summaries(app.FlattenedCommands()) {
		if !slices.Contains(notInOverview(), row[0]) {
			fmt.Fprintf(&page, "  %-15s  %s\n", row[0], row[1])
		}
	}
	page.WriteString(`
First results:  "oneway reflect" on one host, "oneway probe HOST" on another.
All the time:   "oneway agent --config.file=oneway.yml" on each host.
Go on with:     "oneway COMMAND --help" (flags, examples), or "man oneway".
`)
	_, err := io.WriteString(out, page.String())
	return err
}
