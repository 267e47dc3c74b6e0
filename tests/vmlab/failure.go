package vmlab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// remedies are known messages of a console when a guest does not boot; the first
// whose sign is in it is reported.
func remedies() []struct{ sign, do string } {
	return []struct{ sign, do string }{
		{"cannot be preloaded", "Options.Preload must be uml/wake.c, compiled for this host's C library (make vmlab-build)"},
		{"set fp regs failed", "this processor keeps more floating-point state than the kernel knows of (AMX): Options.Preload must be uml/wake.c, compiled"},
		{"must be not mounted noexec", "a guest's memory is a file in /dev/shm with code in it: mount -o remount,exec /dev/shm"},
		{"just ran out of space", "a guest's memory is a file in /dev/shm: make space for Options.Memory of each guest there"},
		{"Requested init", "Options.Init must be an executable file, linked statically, and not below /proc, /sys, /run or /tmp"},
		{"check_ptrace", "the host must let a process trace its children: in a container, allow ptrace (SYS_PTRACE, and its seccomp profile)"},
		{"start_ptraced_child", "the host must let a process trace its children: in a container, allow ptrace (SYS_PTRACE, and its seccomp profile)"},
	}
}

// lastLines of a console are printed; the rest is in its log.
const lastLines = 12

// failure reports that a guest does not run, the last lines of its console, the path of the whole
// log, and the remedy, if known.
func (g *Guest) failure(what string) error {
	text := fmt.Sprintf("vmlab: guest %s: %s", g.Name, what)
	console, err := os.ReadFile(g.log())
	if err != nil {
		return errors.Join(errors.New(text), fmt.Errorf("vmlab: %w", err))
	}
	for _, r := range remedies() {
		if bytes.Contains(console, []byte(r.sign)) {
			text += "\n  " + r.do
			break
		}
	}
	lines := essence(string(console))
	if len(lines) == 0 {
		return fmt.Errorf("%s\n  its console said nothing (%s)", text, g.log())
	}
	return fmt.Errorf("%s\n  its console (%s) said last:\n\t%s", text, g.log(), strings.Join(lines, "\n\t"))
}

// outcome is the end of the kernel.
func (g *Guest) outcome() string {
	<-g.ended
	if g.status == nil {
		return "exit status 0"
	}
	return g.status.Error()
}

// essence is the last lines of a console, up to the kernel's panic if there was one: the text
// after it is the kernel's position, not the reason.
func essence(console string) (lines []string) {
	for line := range strings.Lines(console) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		lines = append(lines, line)
		if strings.Contains(line, "Kernel panic") {
			break
		}
	}
	return lines[max(0, len(lines)-lastLines):]
}
