package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kingpin/v2"
)

// printedHelp is what the program prints for the arguments.
func printedHelp(t *testing.T, args ...string) string {
	t.Helper()
	t.Setenv("COLUMNS", "80")
	var out bytes.Buffer
	func() {
		defer func() { _ = recover() }() // in the place of the end of the program: the command does not run
		_, _ = application().UsageWriter(&out).Terminate(func(int) { panic("end") }).Parse(append(args, "--help"))
	}()
	return out.String()
}

func TestHelpListsEachCommandInOneLine(t *testing.T) {
	main, tests := printedHelp(t), printedHelp(t, "test")
	if strings.Contains(main, "--help-man") { // kingpin's own page, which `oneway man` replaces
		t.Errorf("the help names --help-man:\n%s", main)
	}
	for _, c := range application().Model().FlattenedCommands() {
		if c.Hidden {
			continue
		}
		first, _, _ := strings.Cut(c.Help, "\n")
		for _, help := range []string{main, tests} {
			if help == tests && !strings.HasPrefix(c.FullCommand, "test ") {
				continue
			}
			var found []string
			for line := range strings.Lines(help) {
				if strings.HasPrefix(line, "  "+c.FullCommand+"  ") {
					found = append(found, strings.TrimSpace(line))
				}
			}
			if len(found) != 1 || !strings.HasSuffix(found[0], first) {
				t.Errorf("%s: %q, want one line that ends with %q", c.FullCommand, found, first)
			}
		}
	}
	for name, help := range map[string]string{"oneway": main, "oneway test": tests} {
		if n := strings.Count(help, "\n"); n > 60 || !strings.Contains(help, "Examples:\n") {
			t.Errorf("%s --help: %d lines, want at most 60, with examples:\n%s", name, n, help)
		}
		for line := range strings.Lines(help) {
			if utf8.RuneCountInString(strings.TrimSpace(line)) > 80 {
				t.Errorf("%s --help: more than 80 columns: %s", name, line)
			}
		}
	}
}

func TestHelpOfACommandHasItsTextItsFlagsAndItsExamples(t *testing.T) {
	for _, c := range application().Model().FlattenedCommands() {
		if c.Hidden || c.Name == "help" {
			continue
		}
		help := printedHelp(t, strings.Fields(c.FullCommand)...)
		want := []string{"usage: oneway " + c.FullCommand}
		for _, f := range c.Flags {
			if !f.Hidden {
				want = append(want, f.Name)
			}
		}
		if strings.Contains(c.Help, "Examples:") {
			want = append(want, "Examples:")
		}
		for _, w := range want {
			if !strings.Contains(help, w) {
				t.Errorf("%s: no %q in\n%s", c.FullCommand, w, help)
			}
		}
	}
}

// eachLeaf calls check with each flag of each command that runs.
func eachLeaf(check func(c *kingpin.CmdModel, f *kingpin.FlagModel)) {
	for _, c := range application().Model().FlattenedCommands() {
		for _, f := range c.Flags {
			if !f.Hidden && f.Name != "help" && c.Name != "help" {
				check(c, f)
			}
		}
	}
}

// The help of a flag refers to flags of the same command, unless it shows another command in quotes or in the flag's own program.
func TestHelpOfAFlagRefersToFlagsOfItsCommand(t *testing.T) {
	reference, quoted := regexp.MustCompile(`--(?:no-)?([a-z][a-z0-9.-]*[a-z0-9])`), regexp.MustCompile(`"oneway [^"]*"`)
	checked := 0
	eachLeaf(func(c *kingpin.CmdModel, f *kingpin.FlagModel) {
		for _, found := range reference.FindAllStringSubmatch(quoted.ReplaceAllString(f.Help, ""), -1) {
			checked++
			if !slices.ContainsFunc(c.Flags, func(other *kingpin.FlagModel) bool { return other.Name == found[1] }) {
				t.Errorf("oneway %s has no --%s, which --%s refers to: %s", c.FullCommand, found[1], f.Name, f.Help)
			}
		}
	})
	if checked < 40 {
		t.Errorf("%d references were checked", checked)
	}
}

// A flag is not shown with a value that its help calls impossible, or that has another meaning, and its value has a word.
func TestShownValueOfAFlagAgreesWithItsHelp(t *testing.T) {
	beginsAbove0 := regexp.MustCompile(`(^|[ .])[1-9][0-9a-z.]* to [0-9]`)
	eachLeaf(func(c *kingpin.CmdModel, f *kingpin.FlagModel) {
		shown := f.FormatPlaceHolder()
		switch {
		case f.IsBoolFlag():
		case shown == "0" && (strings.Contains(f.Help, "Default:") || beginsAbove0.MatchString(f.Help)),
			shown == "0" && strings.Contains(f.Help, "0s to"), strings.Contains(shown, "-") && shown == strings.ToUpper(f.Name):
			t.Errorf("oneway %s --%s=%s: %s", c.FullCommand, f.Name, shown, f.Help)
		}
	})
}

// The link of `oneway test` is not chosen as in a configuration. TestTestFromTheTerminalFindsItsLink has the cases; only --link tells them.
func TestHelpOfLinkSaysWhatATestDoes(t *testing.T) {
	cases := []string{"the agent's own test to that host", "the first of its path", "its only link", "without any one with the path's name", "where several links remain, the flag is required"}
	tests := 0
	eachLeaf(func(c *kingpin.CmdModel, f *kingpin.FlagModel) {
		if f.Name != "link" || !strings.HasPrefix(c.FullCommand, "test ") {
			return
		}
		tests++
		for _, one := range cases {
			if !strings.Contains(f.Help, one) {
				t.Errorf("oneway %s --link does not say %q: %s", c.FullCommand, one, f.Help)
			}
		}
	})
	if tests != len(testKinds()) {
		t.Errorf("%d tests have --link", tests)
	}
	app := application()
	if help := strings.Join(strings.Fields(app.GetCommand("test").Model().Help), " "); !strings.Contains(help, "--link tells") || strings.Contains(help, "path to that host") || strings.Contains(help, "is required") {
		t.Errorf("oneway test tells itself which link a test takes: %s", help)
	}
}
