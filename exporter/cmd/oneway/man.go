//go:build !slim

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

// manFiles are the files of the section FILES. The paths are those of the examples and of the unit for systemd.
var manFiles = [][2]string{
	{"/etc/oneway/oneway.yml", "Configuration of the agent (--config.file); deploy/oneway.yml is a commented example."},
	{"/etc/oneway/key", "Shared secret of authenticated mode (key_file)."},
	{"/etc/oneway/token", "Token for load tests against a load server (token_file)."},
	{"/etc/oneway/tokens", "Tokens that a load server accepts, as hashes with their limits (tokens_file)."},
	{"/etc/oneway/calibration.json", "Errors of timestamps, by oneway calibrate (calibration_file)."},
	{"/etc/oneway/web.yml", "TLS and passwords of the agent's web server (--web.config.file)."},
	{"/var/lib/oneway", "Reports of runs, usage of quotas and undelivered points (the agent's state)."},
}

// manCommand registers the hidden command that writes the man page; make build calls it.
func manCommand(app *kingpin.Application) {
	app.Command("man", "Write the man page, in troff.").Hidden().Action(action(func() error { return writeMan(os.Stdout, app.Model()) }))
}

// writeMan writes the man page of all commands.
func writeMan(out io.Writer, app *kingpin.ApplicationModel) error {
	var m strings.Builder
	date, _, _ := strings.Cut(version.BuildDate, "T")
	fmt.Fprintf(&m, ".TH ONEWAY 1 \"%s\" \"oneway %s\" \"User Commands\"\n", date, roff(version.Version))
	fmt.Fprintf(&m, ".SH NAME\noneway \\- measure network paths: delay, loss, throughput and queues\n")
	fmt.Fprintf(&m, ".SH SYNOPSIS\n.nf\n")
	var all []*kingpin.CmdModel
	for _, c := range app.Commands {
		for _, c := range append([]*kingpin.CmdModel{c}, c.Commands...) {
			if len(c.Commands) == 0 && !c.Hidden && c.Name != "help" {
				all = append(all, c)
				fmt.Fprintf(&m, "\\fBoneway %s\\fR %s\n", roff(c.FullCommand), roff(synopsis(c)))
			}
		}
	}
	fmt.Fprintf(&m, ".fi\n.SH DESCRIPTION\n%s\n", roff(app.Help))
	fmt.Fprintf(&m, ".SH OPTIONS\n")
	manFlags(&m, app.Flags)
	fmt.Fprintf(&m, ".SH COMMANDS\n")
	for _, c := range all {
		fmt.Fprintf(&m, ".SS \"oneway %s\"\n", roff(c.FullCommand))
		manHelp(&m, c.Help)
		for _, a := range c.Args {
			fmt.Fprintf(&m, ".TP\n\\fI%s\\fR\n%s\n", roff(a.Name), roff(a.Help))
		}
		manFlags(&m, c.Flags)
	}
	fmt.Fprintf(&m, ".SH \"EXIT STATUS\"\n")
	for _, s := range [][2]string{
		{"0", "The command did what it is for."},
		{"1", "Failure: the reason is on standard error, results so far are on standard output."},
		{"2", "Wrong usage or configuration."},
		{"130", "A second Ctrl-C ended the command at once."},
	} {
		fmt.Fprintf(&m, ".TP\n.B %s\n%s\n", s[0], s[1])
	}
	fmt.Fprintf(&m, ".SH ENVIRONMENT\n.TP\n.B COLUMNS\nWidth of tables and notes that go to a file or pipe; without it a row is one line.\n")
	fmt.Fprintf(&m, ".SH FILES\n")
	for _, f := range manFiles {
		fmt.Fprintf(&m, ".TP\n.I %s\n%s\n", roff(f[0]), roff(f[1]))
	}
	_, err := io.WriteString(out, m.String())
	return err
}

// synopsis has the required flags and the arguments.
func synopsis(c *kingpin.CmdModel) string {
	words := []string{"[flags]"}
	for _, f := range c.Flags {
		if f.Required {
			words = append(words, "--"+f.Name+"="+f.FormatPlaceHolder())
		}
	}
	for _, a := range c.Args {
		word := "[" + a.Name + "]"
		if a.Required {
			word = a.Name
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// manFlags writes flags without the hidden ones.
func manFlags(m *strings.Builder, all []*kingpin.FlagModel) {
	for _, f := range all {
		if f.Hidden {
			continue
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = fmt.Sprintf("-%c, %s", f.Short, name)
		}
		name = "\\fB" + roff(name) + "\\fR"
		if f.IsBoolFlag() {
			if slices.Equal(f.Default, []string{"true"}) {
				name += ", \\fB" + roff("--no-"+f.Name) + "\\fR"
			}
		} else {
			name += "=\\fI" + roff(f.FormatPlaceHolder()) + "\\fR"
		}
		fmt.Fprintf(m, ".TP\n%s\n%s\n", name, roff(f.Help))
	}
}

// manHelp writes the help of a command: paragraphs, and indented lines as they are.
func manHelp(m *strings.Builder, help string) {
	literal := false
	for line := range strings.SplitSeq(help, "\n") {
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !literal:
			m.WriteString(".PP\n.RS 2\n.nf\n")
		case !indented && literal:
			m.WriteString(".fi\n.RE\n")
		}
		literal = indented
		switch {
		case line == "":
			m.WriteString(".PP\n")
		case indented:
			m.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
		default:
			m.WriteString(roff(line) + "\n")
		}
	}
	if literal {
		m.WriteString(".fi\n.RE\n")
	}
}

// roff escapes a text for troff; a hyphen stays one that can be copied.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "±", `\[+-]`, "µ", `\[mc]`, "’", "'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return strings.ReplaceAll(strings.TrimRight(text, " "), "\n.", "\n\\&.")
}
