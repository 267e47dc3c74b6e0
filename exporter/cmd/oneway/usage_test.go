package main

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/option"
)

// TestErrorsOfArgumentsStateTheFlagAndTheExpectation: each error names the flag or lists the commands.
func TestErrorsOfArgumentsStateTheFlagAndTheExpectation(t *testing.T) {
	for args, want := range map[string]string{
		"probe h --interval 5":          `--interval is "5"; it must be a duration with a unit, such as 200ms, 10s or 1h30m`,
		"probe h --count x":             `--count is "x"; it must be a whole number`,
		"probe h --port 65536":          `--port is "65536"; it is beyond the range of the flag`,
		"probe h --clock sun":           `--clock is "sun"; it must be one of chrony, static, none`,
		"load-server --ports 9":         `--ports is "9"; it must be a range of ports, such as 8621-8640`,
		"test saturation h --skip=1":    `--skip is "1"; it must be a duration`,
		"test size-sweep h --seed=-1":   `--seed is "-1"; it must be a whole number`,
		"reflect --rate-limit -1":       `--rate-limit needs a value; one that begins with - is written --rate-limit=-1`,
		"voice --delay -1ms":            `--delay needs a value; one that begins with - is written --delay=-1ms`,
		"probe h --clock-bound 50us":    `--clock-bound is for --clock=static, and --clock is chrony`,
		"probe h -c -1":                 `--count needs a value; one that begins with - is written --count=-1`,
		"prob h":                        `"prob" is not a command; did you mean "probe"? the commands are agent, check-config, `,
		"help prob":                     `"prob" is not a command; did you mean "probe"? `,
		"help test nonsense":            `"nonsense" is not a command; the commands are test `,
		"saturation h":                  `did you mean "test saturation"?`,
		"everything":                    `"everything" is not a command; the commands are agent, `,
		"probe h --intervall 20ms":      "--intervall is unknown; did you mean --interval? `oneway probe --help` has all flags",
		"test saturation h --rate 5M":   "--rate is unknown; did you mean --rate-forward or --rate-reverse? `oneway test saturation --help` has all flags",
		"report --prometheus=h":         "--prometheus is unknown; did you mean --prometheus.url or --prometheus.basic-auth-file or --prometheus.bearer-file?",
		"probe h --everything":          "--everything is unknown; `oneway probe --help` has all flags",
		"--everything":                  "--everything is unknown; `oneway --help` has all flags",
		"calibrate eth0 --json=summary": `--json has no value; write --json without "=summary"`,
		"probe --no-json=true h":        `--no-json has no value; write --no-json without "=true"`,
		"test tcp h --json=full":        `--json is "full"; it must be --json=summary, or --json without a value`,
		"test tcp --json=summary":       "required argument 'host' not provided",
		"probe h 500":                   "\"500\" is one argument too many; `oneway probe --help` has the arguments and flags",
		"test h saturation":             "\"h\" is not a command; write `oneway test saturation` first, and the other arguments after it",
		"test latency h":                `"latency" is not a command; the commands are test ` + testKinds()[0].word + ", test ",
		"test --mss-bytes 9 h":          "--mss-bytes is a flag of test tcp; write the command before its flags",
		"--count 9 probe h":             "--count is a flag of probe, ",
		"probe h --dscp 4.5":            `--dscp is "4.5"; it must be a whole number`,
		"probe h --payload-bytes 100.7": `--payload-bytes is "100.7"; it must be a whole number`,
		"probe h --dscp ef":             `--dscp is "ef"; write 46, the number of this code point`,
		"test":                          "the command is incomplete; it must be one of test " + testKinds()[0].word + ", test " + testKinds()[1].word + ", test ",
	} {
		app, fields := application().Terminate(nil), withHelpFlag(strings.Fields(args))
		_, err := app.Parse(withSummaryFlag(fields))
		if err == nil || !strings.Contains(explain(app, fields, err).Error(), want) {
			t.Errorf("oneway %s: %v, want %q", args, err, want)
		}
	}
}

// twoTimes are options of a test.
type twoTimes struct {
	Same  time.Duration `yaml:"same"`
	Other time.Duration `yaml:"other"`
}

func (o *twoTimes) Describe() []option.Description {
	return []option.Description{option.Value(&o.Same, 0, "One."), option.Value(&o.Other, 0, "Two.")}
}

// TestHelpStatesWhereADefaultOfTheAgentDiffers compares two flags, of which one has the agent's default.
func TestHelpStatesWhereADefaultOfTheAgentDiffers(t *testing.T) {
	cmd := kingpin.New("oneway", "").Command("test", "")
	registerOptions(cmd, flagOf, &twoTimes{1, 2}, &twoTimes{1, 3})
	if one, two := cmd.GetFlag("same").Model().Help, cmd.GetFlag("other").Model().Help; one != "One." || two != "Two. The agent's default: 3ns." {
		t.Errorf("%q, %q", one, two)
	}
}

func TestWideExampleIsBrokenSoThatAShellJoinsIt(t *testing.T) {
	const line = "  oneway test tcp 192.0.2.7 --token-file token --duration 5m   (a remark)"
	if got := fitExample(line, 80); got != line {
		t.Errorf("one that fits: %q", got)
	}
	const want = "  oneway test tcp 192.0.2.7 \\\n      --token-file token \\\n      --duration 5m\n      (a remark)"
	if got := fitExample(line, 30); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
