package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/option"
)

// namedValue is the value of a flag; its errors name the flag and the expectation.
type namedValue struct {
	kingpin.Value
	flag string
}

// anyOf begins kingpin's error of a value that is none of a list.
const anyOf = "enum value must be one of "

// Set parses the text of the flag.
func (v namedValue) Set(text string) error {
	err := v.Value.Set(text)
	if err == nil {
		// The parser cuts the fraction of integers.
		number, notNumber := strconv.ParseFloat(text, 64)
		if n, notInteger := strconv.ParseInt(v.String(), 10, 64); notNumber == nil && notInteger == nil && float64(n) != number {
			return fmt.Errorf("--%s is %q; it must be a whole number", v.flag, text)
		}
		return nil
	}
	number, isNumber := errors.AsType[*strconv.NumError](err)
	names, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), anyOf), ", got ")
	switch {
	case strings.HasPrefix(err.Error(), anyOf):
		err = fmt.Errorf("it must be one of %s", strings.ReplaceAll(names, ",", ", "))
	case strings.HasPrefix(err.Error(), "time: "):
		err = errors.New("it must be a duration with a unit, such as 200ms, 10s or 1h30m")
	case isNumber && errors.Is(number, strconv.ErrRange):
		err = errors.New("it is beyond the range of the flag")
	case isNumber && number.Func == "ParseFloat":
		err = errors.New(cmp.Or(option.CodePointMeant(text), "it must be a number"))
	case isNumber:
		err = errors.New(cmp.Or(option.CodePointMeant(text), "it must be a whole number"))
	}
	return fmt.Errorf("--%s is %q; %w", v.flag, text, err)
}

// IsCumulative reports whether the flag is repeatable.
func (v namedValue) IsCumulative() bool {
	repeatable, ok := v.Value.(interface{ IsCumulative() bool })
	return ok && repeatable.IsCumulative()
}

// eachCommand calls do with each command.
func eachCommand(app *kingpin.Application, do func(*kingpin.CmdClause, *kingpin.CmdModel)) {
	for _, top := range app.Model().Commands {
		cmd := app.GetCommand(top.Name)
		do(cmd, top)
		for _, below := range top.Commands {
			do(cmd.GetCommand(below.Name), below)
		}
	}
}

// nameFlagsInErrors makes the errors of all flags name their flag.
func nameFlagsInErrors(app *kingpin.Application) { eachCommand(app, name) }

// fitExamples breaks the examples of the help that are wider than the terminal, so that they can still be copied: kingpin wraps
// the other text. Zero: no limit.
func fitExamples(app *kingpin.Application, width int) {
	eachCommand(app, func(cmd *kingpin.CmdClause, model *kingpin.CmdModel) {
		lines := strings.Split(model.Help, "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, "  ") && width > 0 {
				lines[i] = fitExample(line, width)
			}
		}
		cmd.Help(strings.Join(lines, "\n"))
	})
}

// fitExample breaks a command into lines that a shell joins; a remark behind it gets a line of its own.
func fitExample(line string, width int) string {
	const further = "      "
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	command, remark, remarked := strings.Cut(strings.TrimSpace(line), "   ")
	var all []string
	text := "  "
	for i, word := range strings.Fields(command) {
		if i > 0 && utf8.RuneCountInString(text+word)+len(` \`) > width {
			all, text = append(all, text+`\`), further
		}
		text += word + " "
	}
	all = append(all, strings.TrimRight(text, " "))
	if remarked {
		all = append(all, further+strings.TrimSpace(remark))
	}
	return strings.Join(all, "\n")
}

func name(cmd *kingpin.CmdClause, model *kingpin.CmdModel) {
	for _, f := range model.Flags {
		if boolean, ok := f.Value.(interface{ IsBoolFlag() bool }); !ok || !boolean.IsBoolFlag() {
			cmd.GetFlag(f.Name).SetValue(namedValue{f.Value, f.Name})
		}
	}
}

// explain adds what the user can do to errors of the arguments.
func explain(app *kingpin.Application, args []string, err error) error {
	var word, group, flag string
	if err := valueOfSwitch(app, args); err != nil {
		return err
	}
	if n, _ := fmt.Sscanf(err.Error(), "unknown long flag '--%s", &flag); n == 1 {
		return unknownFlag(app, args, strings.TrimSuffix(flag, "'"))
	}
	if surplus, found := strings.CutPrefix(err.Error(), "unexpected "); found {
		command, _ := flagsFor(app, args)
		return fmt.Errorf("%q is one argument too many; `%s --help` has the arguments and flags", surplus, command)
	}
	if n, _ := fmt.Sscanf(err.Error(), "expected argument for flag '%s", &flag); n == 1 {
		flag = strings.TrimSuffix(flag, "'")
		value := "-1"
		if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			value = args[i+1]
		}
		return fmt.Errorf("%s needs a value; one that begins with - is written %[1]s=%s", longFlag(app, args, flag), value)
	}
	unknown, _ := fmt.Sscanf(err.Error(), "expected command but got %q", &word)
	incomplete, _ := fmt.Sscanf(err.Error(), "must select a subcommand of '%s", &group)
	if unknown+incomplete == 0 {
		return err
	}
	all := commandsOf(app, strings.TrimSuffix(group, "'"))
	if i := slices.Index(args, word); unknown > 0 && i > 0 {
		if below := commandsOf(app, args[i-1]+" "); len(below) > 0 {
			all = below
			for _, later := range args[i:] {
				if command := args[i-1] + " " + later; slices.Contains(all, command) {
					return fmt.Errorf("%q is not a command; write `%s %s` first, and the other arguments after it", word, app.Name, command)
				}
			}
		}
	}
	if incomplete > 0 {
		return fmt.Errorf("the command is incomplete; it must be one of %s", strings.Join(all, ", "))
	}
	hint := ""
	if closest := nearestCommand(word, all); closest != "" {
		hint = option.DidYouMean(closest) + " "
	}
	return fmt.Errorf("%q is not a command; %sthe commands are %s", word, hint, strings.Join(all, ", "))
}

// commandsOf are the commands that begin with a text, with all their words.
func commandsOf(app *kingpin.Application, begin string) []string {
	var all []string
	for _, c := range app.Model().FlattenedCommands() {
		if c.Name != "help" && strings.HasPrefix(c.FullCommand, begin) {
			all = append(all, c.FullCommand)
		}
	}
	return all
}

// longFlag is the long name of a flag of the command, such as --count for -c.
func longFlag(app *kingpin.Application, args []string, flag string) string {
	if context, _ := app.ParseContext(args); context != nil && context.SelectedCommand != nil {
		for _, f := range context.SelectedCommand.Model().Flags {
			if f.Short != 0 && flag == "-"+string(f.Short) {
				return "--" + f.Name
			}
		}
	}
	return flag
}

// unknownFlag names the flags that an unknown one may mean: those that begin with it, else the nearest.
func unknownFlag(app *kingpin.Application, args []string, flag string) error {
	command, flags := flagsFor(app, args)
	var below []string
	for _, c := range app.Model().FlattenedCommands() {
		has := func(f *kingpin.FlagModel) bool { return f.Name == flag }
		if strings.HasPrefix(app.Name+" "+c.FullCommand, command+" ") && slices.ContainsFunc(c.Flags, has) {
			below = append(below, c.FullCommand)
		}
	}
	if len(below) > 0 {
		return fmt.Errorf("--%s is a flag of %s; write the command before its flags", flag, strings.Join(below, ", "))
	}
	var meant, all []string
	for _, f := range flags {
		if all = append(all, f.Name); strings.HasPrefix(f.Name, flag+"-") || strings.HasPrefix(f.Name, flag+".") {
			meant = append(meant, "--"+f.Name)
		}
	}
	if nearest := option.Nearest(flag, all); len(meant) == 0 && nearest != "" {
		meant = []string{"--" + nearest}
	}
	hint := ""
	if len(meant) > 0 {
		hint = fmt.Sprintf("did you mean %s? ", strings.Join(meant, " or "))
	}
	return fmt.Errorf("--%s is unknown; %s`%s --help` has all flags", flag, hint, command)
}

// flagsFor returns the command of the arguments and its flags.
func flagsFor(app *kingpin.Application, args []string) (command string, flags []*kingpin.FlagModel) {
	if context, _ := app.ParseContext(args); context != nil && context.SelectedCommand != nil {
		return app.Name + " " + context.SelectedCommand.FullCommand(), context.SelectedCommand.Model().Flags
	}
	return app.Name, app.Model().Flags
}

// valueOfSwitch explains an argument that gives a value to a flag without values, such as --json=yes: the parser takes the value
// for another argument. It is nil if no argument does.
func valueOfSwitch(app *kingpin.Application, args []string) error {
	_, flags := flagsFor(app, args)
	summary := slices.ContainsFunc(flags, func(f *kingpin.FlagModel) bool { return f.Name == summaryFlag })
	for _, a := range args {
		if a == "--" {
			break
		}
		flag, value, found := strings.Cut(a, "=")
		known := slices.ContainsFunc(flags, func(f *kingpin.FlagModel) bool {
			return f.IsBoolFlag() && (flag == "--"+f.Name || flag == "--no-"+f.Name)
		})
		switch {
		case !found || !known || summary && a == summaryArgument:
		case summary && flag == "--json":
			return fmt.Errorf("%s is %q; it must be %s, or %[1]s without a value", flag, value, summaryArgument)
		default:
			return fmt.Errorf("%s has no value; write %[1]s without %q", flag, "="+value)
		}
	}
	return nil
}

// nearestCommand is the command that a word means by its own name, which may have words before it: "saturation" means "test saturation".
func nearestCommand(word string, commands []string) string {
	if nearest := option.Nearest(word, commands); nearest != "" {
		return nearest
	}
	own := map[string]string{}
	for _, c := range commands {
		own[c[strings.LastIndexByte(c, ' ')+1:]] = c
	}
	return own[option.Nearest(word, slices.Sorted(maps.Keys(own)))]
}
