package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/responder"
)

const tokenNewHelp = `Make a token, with which a client may run heavy tests against a responder.

Prints the token, once: it goes to the client, in a file of its own that only the
agent's user can read (token_file). Its hash goes to the responder's tokens file, with
what the token may use; the responder reads that file again when it changes. To revoke a
token, take its line out.

Limits count UDP payload. Without --rate, --duration or --per-day there is no limit of
that kind; without --sessions, two sessions at one time.

Examples:
  oneway token new --file /etc/oneway/tokens --name berlin
  oneway token new --file /etc/oneway/tokens --name berlin --rate 20Mbit --duration 5m --per-day 10GB
  oneway token new --name berlin --rate 20Mbit      (prints the line instead of writing it)`

type tokenFlags struct {
	file, name, rate, duration, sessions, perDay string
}

func tokenCommand(app *kingpin.Application) {
	f := &tokenFlags{}
	parent := app.Command("token", "Tokens of a responder: who may run heavy tests, and how much.")
	cmd := parent.Command("new", tokenNewHelp)
	cmd.Flag("file", "The responder's tokens file; made (mode 0600) if there is none.").PlaceHolder("FILE").StringVar(&f.file)
	cmd.Flag("name", "Name of the client, for logs and metrics.").Required().StringVar(&f.name)
	cmd.Flag("rate", "Most bits a second in one direction, such as 20Mbit.").PlaceHolder("RATE").StringVar(&f.rate)
	cmd.Flag("duration", "Longest stream, 1s to 1h.").PlaceHolder("DURATION").StringVar(&f.duration)
	cmd.Flag("sessions", "Most sessions at one time; without it, 2.").PlaceHolder("N").StringVar(&f.sessions)
	cmd.Flag("per-day", "Most data a day, both directions, such as 10GB.").PlaceHolder("BYTES").StringVar(&f.perDay)
	cmd.Action(action(func() error { return f.run(os.Stdout) }))
}

func (f *tokenFlags) run(out io.Writer) error {
	var words []string
	for _, limit := range []struct{ key, value string }{
		{"rate", f.rate}, {"duration", f.duration}, {"sessions", f.sessions}, {"per-day", f.perDay},
	} {
		if limit.value != "" {
			words = append(words, limit.key+"="+limit.value)
		}
	}
	limits, err := responder.ParseLimits(words)
	if err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	token, text, err := responder.NewToken(f.name, limits)
	if err != nil {
		return usageError{err}
	}
	if f.file == "" {
		_, err := fmt.Fprintf(out, tokenByHand, text, token)
		return err
	}
	if err := responder.AppendToken(f.file, token); err != nil {
		return err
	}
	file, err := filepath.Abs(f.file)
	if err != nil {
		file = f.file // as it was given, then
	}
	_, err = fmt.Fprintf(out, tokenWritten, text, file)
	return err
}

const tokenClient = `%s

This is the token, shown this once. On the client, put it into a file that only the
agent's user can read (chmod 600), and name that file as token_file of its heavy probes.
`

const (
	tokenByHand = tokenClient + `On the responder, add this line to the tokens file (tokens_file, chmod 600):

%s
`
	tokenWritten = tokenClient + `On the responder nothing is left to do: its hash stands in %s,
which must be the responder's tokens_file.
`
)
