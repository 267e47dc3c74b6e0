package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/internal/httpd"
	"oneway.example/exporter/probes"
)

const checkConfigHelp = `Check a configuration as the start of an agent would, and start nothing.

Every error has the line, the key's path, and what would be right.

Examples:
  oneway check-config /etc/oneway/oneway.yml
  oneway check-config --web.config.file=/etc/oneway/web.yml /etc/oneway/oneway.yml

Exit status: 0 all right, 1 something is wrong, 2 usage.`

func checkConfigCommand(app *kingpin.Application) {
	var files []string
	var webConfig string
	cmd := app.Command("check-config", checkConfigHelp)
	cmd.Arg("file", "Configurations to check.").Required().StringsVar(&files)
	cmd.Flag("web.config.file", "TLS and authentication to check too.").StringVar(&webConfig)
	cmd.Action(action(func() error { return checkConfigs(os.Stdout, os.Stderr, files, webConfig) }))
}

// checkConfigs checks all, and says of each what it is or what is wrong.
func checkConfigs(out, problems io.Writer, files []string, webConfig string) error {
	wrong := 0
	if err := httpd.CheckConfig(webConfig); err != nil {
		fmt.Fprintln(problems, err)
		wrong++
	}
	for _, file := range files {
		s, err := agent.Check(file, probes.All())
		if err != nil {
			fmt.Fprintln(problems, err)
			wrong++
			continue
		}
		fmt.Fprintf(out, "%s: ok: %s, %s\n", file, count(s.Paths, "path"), count(s.Probes, "probe"))
	}
	switch wrong {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("check-config: a file is not right")
	}
	return fmt.Errorf("check-config: %d files are not right", wrong)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
