package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/loadserver"
)

const tokenNewHelp = `Make a token, with which a client may run load tests against a load server.

Writes the token to --out, or prints it, once: it goes to the client, in a file of its
own that only the agent's user can read (token_file). Its hash goes to the load server's tokens file, with
what the token may use; the load server reads that file again when it changes. To revoke a
token, take its line out.

Limits count UDP payload. Without --rate, --duration or --per-day there is no limit of
that kind; without --sessions, two sessions at one time.

Examples:
  oneway token new --file /etc/oneway/tokens --name berlin --out berlin.token
  oneway token new --file /etc/oneway/tokens --name berlin --out berlin.token --rate 20Mbit --duration 5m --per-day 10GB
  oneway token new --name berlin --rate 20Mbit      (prints the line instead of writing it)`

type tokenFlags struct {
	file, out, name, rate, duration, sessions, perDay string
}

func tokenCommand(app *kingpin.Application) {
	f := &tokenFlags{}
	parent := app.Command("token", "Tokens of a load server: who may run load tests, and how much.")
	cmd := parent.Command("new", tokenNewHelp)
	cmd.Flag("file", "The load server's tokens file; made (mode 0600) if there is none.").PlaceHolder("FILE").StringVar(&f.file)
	cmd.Flag("out", "New file for the token (mode 0600), in place of printing it.").PlaceHolder("FILE").StringVar(&f.out)
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
	limits, err := loadserver.ParseLimits(words)
	if err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	token, text, err := loadserver.NewToken(f.name, limits)
	if err != nil {
		return usageError{err}
	}
	shown, client := text, tokenPrinted
	if f.out != "" {
		if err := writeToken(f.out, text); err != nil {
			return err
		}
		shown, client = f.out, tokenInFile
	}
	if f.file == "" {
		_, err := fmt.Fprintf(out, client+tokenByHand, shown, token)
		return err
	}
	if err := loadserver.AppendToken(f.file, token); err != nil {
		if f.out != "" {
			_ = os.Remove(f.out) // no load server knows it
		}
		return err
	}
	file, err := filepath.Abs(f.file)
	if err != nil {
		file = f.file // as it was given, then
	}
	_, err = fmt.Fprintf(out, client+tokenWritten, shown, file)
	return err
}

// writeToken makes a file that only its owner may read. One that is there already is an error:
// it may hold the token of another load server.
func writeToken(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err = f.WriteString(text + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(file) // it holds no whole token
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

const (
	tokenPrinted = `%s

This is the token, shown this once. On the client, put it into a file that only the
agent's user can read (chmod 600), and name that file as token_file of its load-test probes.
`
	tokenInFile = `The token stands in %s, once. Move that file to the client by a way that nobody else
reads, keep its mode, and name it as token_file of its load-test probes.
`
	tokenByHand = `On the load server, add this line to the tokens file (tokens_file, chmod 600):

%s
`
	tokenWritten = `On the load server nothing is left to do: its hash stands in %s,
which must be the load server's tokens_file.
`
)
