package commands

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/await"
	"oneway.example/tests/oneway"
	"oneway.example/tests/process"
	"oneway.example/tests/sandbox"
)

const repository = "../.."

var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "oneway-commands")
		if err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			program, err = oneway.Build(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "commands:", err)
			return 1
		}
		return m.Run()
	}())
}

// pages are the pages with commands for users, by their path in the repository.
func pages(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "exporter/doc/*.md", "exporter/doc/from/*.md", "exporter/serve/runbook/*.md", "deploy/*/README.md", "chrony-config/*.md", "chrony-config/*/README.md", "grafana-dashboards/README.md", "telegraf-plugins/README.md"} {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no page fits %s: %v", pattern, err)
		}
		for _, f := range files {
			name, err := filepath.Rel(repository, f)
			if err != nil {
				t.Fatal(err)
			}
			if name != "ARCHITECTURE.md" { // its indented blocks are drawings
				out = append(out, name)
			}
		}
	}
	return out
}

// commandsOf are the commands of a page.
func commandsOf(t *testing.T, page string) []Command {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}
	return Extract(text)
}

// filesOf are the files that a page shows: the blocks of YAML whose first line is their name, as "# hosts.yml".
func filesOf(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```yaml\n(?:version: 1\n)?# ([a-z]+\\.yml)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = "version: 1\n" + strings.Replace(m[2], "mesh:\n", "mesh:\n  self: seoul-1\n", 1) // no name is of this host
		if m[1] == "hosts.yml" {
			out[m[1]] = m[2]
		}
	}
	return out
}

// notHere is the entry of a command that runs elsewhere.
func notHere(command string) (Elsewhere, bool) {
	i := slices.IndexFunc(elsewhere, func(e Elsewhere) bool {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(command, "sudo "), e.Begin)
		return ok && (rest == "" || strings.HasSuffix(e.Begin, "_") || rest[0] == ' ')
	})
	if i < 0 {
		return Elsewhere{}, false
	}
	return elsewhere[i], true
}

// Every command that is not run here is run by another file, or has the reason why nothing runs it; every entry is of a command.
func TestCommandsThatRunElsewhereDoSo(t *testing.T) {
	used := map[Elsewhere]bool{}
	for _, page := range pages(t) {
		for _, c := range commandsOf(t, page) {
			if e, ok := notHere(c.Text); ok {
				used[e] = true
			}
		}
	}
	for _, e := range elsewhere {
		if !used[e] {
			t.Errorf("no page has a command %q", e.Begin)
		}
		if e.File == "" && e.Reason != "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repository, e.File))
		if err != nil || !strings.Contains(string(text), e.Evidence) {
			t.Errorf("%q: %s does not contain %q (%v)", e.Begin, e.File, e.Evidence, err)
		}
	}
}

// The pages whose commands start agent, reflector or load server themselves; all others find an agent.
var alone = []string{"README.md", "CONTRIBUTING.md", "exporter/doc/two-hosts.md", "exporter/doc/load-tests.md", "exporter/doc/agent.md"}

func TestCommandsOfPagesRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: file systems and a network of its own need root")
	}
	t.Run("pages", func(t *testing.T) {
		for _, page := range pages(t) {
			if strings.HasPrefix(page, "exporter/serve/runbook/") {
				continue
			}
			commands := commandsOf(t, page)
			if !slices.ContainsFunc(commands, func(c Command) bool { _, ok := notHere(c.Text); return !ok }) {
				continue
			}
			t.Run(strings.ReplaceAll(page, "/", "."), func(t *testing.T) {
				t.Parallel()
				h := newHost(t)
				if !slices.Contains(alone, page) {
					h.agent(page == "exporter/doc/json.md")
				}
				if page == "exporter/doc/report.md" {
					h.prometheus(125) // its intervals are whole minutes
				}
				h.page(page, commands)
			})
		}
		t.Run("runbooks", func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.agent(true)
			h.prometheus(5)
			for _, page := range pages(t) {
				if strings.HasPrefix(page, "exporter/serve/runbook/") {
					h.page(page, commandsOf(t, page))
				}
			}
		})
	})
}

// host is a host of its own: files that a command may change, a network, chronyd.
type host struct {
	*testing.T
	*sandbox.Sandbox
	// pin is the hash of the load server's key; words replaces what a reader replaces.
	pin   string
	words *strings.Replacer
	// current is the command of a page that goes on.
	current *process.Process
}

// pin is the hash of a load server's key, as it prints it.
var pin = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// files makes /etc and the directories in which commands install copies, and names that all lead to this host.
const files = `set -e
d=$1
cp -a /etc "$d/etc"
printf '127.0.0.1 localhost a b reflector.example.net server.example.net a.example\n' >"$d/etc/hosts"
mkdir -p "$d/etc/oneway" "$d/etc/prometheus" "$d/etc/grafana/provisioning/datasources" "$d/etc/grafana/provisioning/dashboards" "$d/bin" "$d/share/man/man1" "$d/clone/build"
mkdir -p /var/lib/oneway
cp -r "$3/deploy/prometheus/rules" "$d/etc/prometheus/rules"
mount --bind "$d/etc" /etc
mount --bind "$d/share" /usr/local/share
printf '#!/bin/sh\nexec "$@"\n' >"$d/bin/sudo" # this is root
printf '#!/bin/sh\nshift\nexec "$@"\n' >"$d/bin/ssh" # every other host is this one
chmod +x "$d/bin/sudo" "$d/bin/ssh"
ip link add eth0 type veth peer name eth1
ip link set eth0 up
ip link set eth1 up
install "$2" "$d/bin/oneway"
mount --bind "$d/bin" /usr/local/bin
cd "$d/clone"
cp -r "$3/deploy" . # commands write there
ln -s "$3/grafana-dashboards" "$3/Makefile" "$3/tests" .
touch oneway_1.0_amd64.deb # to be copied only
install "$2" build/oneway
touch build/oneway-telegraf build/oneway-clock-telegraf # to be installed only
"$2" man >build/oneway.1
cp -r "$3/deploy/completion" build/completion
printf 'driftfile /var/lib/chrony-drift\nlocal stratum 1\nallow 127.0.0.1\n' >/etc/oneway/chrony.conf
`

// configuration is the file of an agent whose only path is to itself.
const configuration = `version: 1
clock: {source: chrony}
reflector: {listen: [":862"], key_file: /etc/oneway/reflector.key, require_key: false}
load_server: {listen: [":8620"], tokens_file: /etc/oneway/tokens}
state_dir: /var/lib/oneway
on_demand:
  targets: [127.0.0.0/8, reflector.example.net]
  modules: [{name: voice, type: stamp, count: 5, interval: 20ms, loss_timeout: 100ms}]
paths:
  - name: loopback
    peer: 127.0.0.1
    labels: {site: here}
    probes:
      - {type: stamp, interval: 100ms}
      - {type: saturation, every: 10s, duration: 1s, rate: {forward: 1Mbit, reverse: 1Mbit}, token_file: /etc/oneway/client.token}
`

// newHost makes one, with a clone after make build.
func newHost(t *testing.T) *host {
	h := &host{T: t, Sandbox: sandbox.New(t, "", "")}
	source, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	h.shell(files, "sh", h.Dir, program, source)
	h.Daemon("chronyd", "-d", "-x", "-u", "root", "-f", "/etc/oneway/chrony.conf")
	h.shell("until chronyc tracking | grep -q '^Leap status *: Normal'; do sleep 0.1; done", "sh")
	write(t, filepath.Join(h.Dir, "clone", "oneway.yml"), "version: 1\nclock: {source: chrony}\nreflector: {}\npaths: [{name: here, peer: 127.0.0.1, probes: [{type: stamp}]}]\n")
	return h
}

// shell runs a script, which must not fail.
func (h *host) shell(script string, args ...string) string {
	h.T.Helper()
	out, err := h.Command("sh", append([]string{"-c", script}, args...)...).CombinedOutput()
	if err != nil {
		h.T.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// agent starts an agent with a path to itself and a load server; with a run its first load test has completed.
func (h *host) agent(withRun bool) {
	h.T.Helper()
	write(h.T, filepath.Join(h.Dir, "etc/oneway/oneway.yml"), configuration)
	h.shell("umask 077; head -c 24 /dev/urandom | base64 >/etc/oneway/reflector.key; cd /etc/oneway && oneway token new --file tokens --name a --out client.token --rate 20Mbit && cp client.token \"$1\"/clone/token", "sh", h.Dir)
	agent := h.Daemon("oneway", "agent", "--config.file=/etc/oneway/oneway.yml")
	await.That(h.T, "the load server logs its pin", func() bool { h.pin = pin.FindString(agent.String()); return h.pin != "" })
	// From now on its own client knows the pin.
	pinned := strings.Replace(configuration, "token_file: /etc/oneway/client", "pin: "+h.pin+", token_file: /etc/oneway/client", 1)
	write(h.T, filepath.Join(h.Dir, "etc/oneway/oneway.yml"), pinned)
	reload := "curl -sSf -X POST http://127.0.0.1:9862/-/reload"
	h.shell(reload)
	var run string
	await.That(h.T, "a run is stored", func() bool {
		if !withRun {
			return true
		}
		out, err := h.Command("sh", "-c", `curl -sf http://127.0.0.1:9862/runs | jq -r '.runs[] | select(.kind == "saturation") | .id'`).Output()
		run, _, _ = strings.Cut(string(out), "\n")
		return err == nil && run != ""
	})
	// The link is free for the commands.
	write(h.T, filepath.Join(h.Dir, "etc/oneway/oneway.yml"), strings.Replace(pinned, "every: 10s", "every: 168h", 1))
	h.shell(reload)
	h.words = strings.NewReplacer(
		"http://PROMETHEUS", "http://127.0.0.1:9090", "http://REMOTE-AGENT", "http://127.0.0.1:9862", "http://AGENT", "http://127.0.0.1:9862",
		"STORE-URL", "http://127.0.0.1:9862", "HOST", "127.0.0.1", `"PATH"`, `"loopback"`, "path=PATH", "path=loopback", "FILE", "/etc/oneway/client.token --pin "+h.pin,
		"RATE", "1Mbit", "/runs/ID", "/runs/"+run, "sha256:7a2b...", h.pin, "oneway probe --json", "oneway probe --count=10 --interval=20ms --json",
		"mtr -u -w -c 100", "mtr -u -w -c 1 -G 1", "--token-file token --pin", "--duration 1s --token-file token --pin", "--duration 10s", "--duration 2s", "oneway test tcp-sweep", "oneway test tcp-sweep --send-buffer-bytes=64KiB --cell-duration=4s --repetitions=1", "LINK", "loopback", "--path=berlin", "--path=loopback", "server.example.net", "127.0.0.1",
		"--from=2026-10-01", "--from="+time.Now().AddDate(0, 0, -1).Format(time.DateOnly), "--to=2026-11-01", "--to="+time.Now().AddDate(0, 0, 2).Format(time.DateOnly),
	)
}

// prometheus starts a Prometheus that scrapes the agent once a second, and waits until it has more scrapes than a number.
func (h *host) prometheus(n int) {
	h.T.Helper()
	write(h.T, filepath.Join(h.Dir, "etc/prometheus/prometheus.yml"), "global: {scrape_interval: 1s}\nrule_files: [rules/*.yml]\nscrape_configs: [{job_name: oneway, static_configs: [{targets: ['127.0.0.1:9862']}]}]\n")
	h.Daemon("prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path="+h.Dir+"/lib/prometheus", "--web.listen-address=127.0.0.1:9090")
	for _, enough := range []int{min(n, 60), n} { // each within await.Timeout
		await.That(h.T, fmt.Sprintf("Prometheus has more than %d scrapes of the path", enough), func() bool {
			out, err := h.Command("promtool", "query", "instant", "http://127.0.0.1:9090", fmt.Sprintf("count_over_time(oneway_probe_up[5m]) > %d", enough)).Output()
			return err == nil && strings.Contains(string(out), "loopback")
		})
	}
}

// endless are the commands that go on until they are ended, with what they print once they work.
var endless = map[string]*regexp.Regexp{
	"oneway reflect":     regexp.MustCompile("(?i)listening|replies"),
	"oneway agent":       regexp.MustCompile("(?i)listening on"),
	"oneway load-server": pin,
}

// page runs the commands of a page in their order, in the directory that the page assumes.
func (h *host) page(page string, commands []Command) {
	h.T.Helper()
	dir := filepath.Join(h.Dir, "clone")
	for name, text := range filesOf(h.T, page) {
		write(h.T, filepath.Join(dir, name), text)
		if page == "exporter/doc/mesh.md" {
			write(h.T, filepath.Join(h.Dir, "etc/oneway", name), text)
		}
	}
	if page == "grafana-dashboards/README.md" {
		dir = filepath.Join(dir, "grafana-dashboards")
	}
	for _, c := range commands {
		if _, ok := notHere(c.Text); ok {
			continue
		}
		command := c.Text
		if h.words != nil {
			command = h.words.Replace(command)
		} else if h.pin != "" {
			command = strings.ReplaceAll(command, "sha256:7a2b...", h.pin)
		}
		h.run(fmt.Sprintf("%s:%d", page, c.Line), dir, command)
	}
}

// goesOn starts a command that goes on, in place of the one before it, and waits until a pattern is in its output.
func (h *host) goesOn(where string, works *regexp.Regexp, command string) {
	h.T.Helper()
	if h.current != nil {
		h.current.Kill(h.T)
	}
	h.current = process.Run(h.T, h.Command("bash", "-c", command))
	output := func() string { return h.current.Stdout.String() + h.current.Stderr.String() }
	await.That(h.T, where+" works: "+command, func() bool {
		select {
		case <-h.current.Done:
			h.T.Fatalf("%s: %s: has ended: %s", where, command, output())
		default:
		}
		return works.MatchString(output())
	})
	h.pin = pin.FindString(output())
}

// run runs one command, which must succeed; one that goes on must work after a while.
func (h *host) run(where, dir, command string) {
	h.T.Helper()
	if target, ok := strings.CutPrefix(command, "make "); ok {
		target, rest, _ := strings.Cut(target, " ")
		command = "make --dry-run " + target // each is a test or a build of its own
		if then, ok := strings.CutPrefix(rest, "&& "); ok {
			command += " && " + then
		}
	}
	for begin, works := range endless {
		if strings.HasPrefix(strings.TrimPrefix(command, "sudo "), begin) {
			h.goesOn(where, works, "cd "+dir+" && exec "+command)
			return
		}
	}
	ctx, cancel := context.WithTimeout(h.T.Context(), 90*time.Second)
	defer cancel()
	cmd := h.Command("bash", "-o", "pipefail", "-c", "cd "+dir+" && "+command)
	cmd = exec.CommandContext(ctx, cmd.Args[0], cmd.Args[1:]...)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	// A family without a series has no line; TestCommandsOfRunbooksNameWhatExists compares the names.
	nothing := strings.Contains(command, "| grep") && len(out) == 0
	// The loopback interface has no bottleneck, so that some load tests cannot tell its properties.
	partial := strings.HasPrefix(command, "oneway test ") && strings.Contains(string(out), "incomplete: the results are partial")
	if err != nil && !nothing && !partial {
		h.T.Errorf("%s: %s: %v\n%.2000s", where, command, err, out)
		return
	}
	h.T.Logf("%s: %s: %v, %d bytes", where, beginning(command), time.Since(begin).Round(10*time.Millisecond), len(out))
}

// beginning is the first 100 bytes of a command.
func beginning(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
