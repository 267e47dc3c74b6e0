package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

func TestManPageHasEveryCommandFlagAndExample(t *testing.T) {
	app := application()
	var out bytes.Buffer
	if err := writeMan(&out, app.Model()); err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\fB`, "", `\fR`, "", `\fI`, "", `\[mc]`, "µ").Replace(out.String())
	for _, c := range app.Model().FlattenedCommands() {
		if c.Hidden || c.Name == "help" {
			continue
		}
		want := []string{".SS \"oneway " + c.FullCommand + "\"\n"}
		for _, f := range c.Flags {
			if !f.Hidden {
				want = append(want, "--"+f.Name)
			}
		}
		for line := range strings.SplitSeq(c.Help, "\n") {
			if strings.HasPrefix(line, "  oneway ") {
				want = append(want, strings.TrimSpace(line)+"\n")
			}
		}
		for _, w := range want {
			if !strings.Contains(plain, w) {
				t.Errorf("%s: no %q", c.FullCommand, w)
			}
		}
	}
	for _, section := range []string{".TH ONEWAY 1 ", ".SH NAME\n", ".SH \"EXIT STATUS\"\n", ".SH FILES\n"} {
		if !strings.Contains(out.String(), section) {
			t.Errorf("no %q", section)
		}
	}
	for line := range strings.Lines(out.String()) { // a line that begins with a dot or quote is a request of troff
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(line, "'") ||
			strings.HasPrefix(line, ".") && !strings.Contains(" .TH .SH .SS .TP .PP .RS .RE .nf .fi .B .I ", " "+name+" ") {
			t.Errorf("the request %q", line)
		}
	}
}

// bash separates --flag=value into three words; the program gets two.
func TestBashCompletionPassesFlagAndValue(t *testing.T) {
	const script = `source ../../../deploy/completion/oneway.bash
oneway() { [ "$*" = "--completion-bash test saturation --mode $want" ] && echo "fixed sweep search"; }
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _oneway; echo "${COMPREPLY[@]}"; }
want=se try oneway test saturation --mode se
want=se try oneway test saturation --mode = se
want= try oneway test saturation --mode =
want=none try oneway test saturation --token-file ""`
	out, err := exec.Command("bash", "-c", script).CombinedOutput()
	if want := "search\nsearch\nfixed sweep search\n\n"; err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}
