package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/load/loadserver"
)

const tokenNewHelp = `Make a token for a client of a load server.

Writes the token to --out, or once to standard output, and what to do with it to standard
error. Move it to the client, into a file that only the agent's user can read (token_file).
The token's hash and limits are added to the load server's tokens file, which the load
server reads again when it changes. To revoke a token, remove its line.

Limits count payload of UDP and TCP. Without --rate, --duration or --per-day there is no such
limit.

Examples:
  oneway token new --file /etc/oneway/tokens --name berlin --out berlin.token
  oneway token new --file /etc/oneway/tokens --name berlin --out berlin.token --rate 20Mbit --duration 5m --per-day 10GB
  oneway token new --name berlin --rate 20Mbit      (prints the line for the tokens file)

Exit status: 0 made, 1 failure, 2 wrong usage.`

type tokenFlags struct {
	file, out, name string
	// limits has the values by keys of loadserver.TokenLimits; empty: no such limit.
	limits map[string]*string
}

func tokenCommand(app *kingpin.Application) {
	f := &tokenFlags{limits: map[string]*string{}}
	parent := app.Command("token", "Tokens of a load server: its clients and their limits.")
	cmd := parent.Command("new", tokenNewHelp)
	cmd.Flag("file", "Tokens file of the load server; created with mode 0600 if missing.").PlaceHolder("FILE").StringVar(&f.file)
	cmd.Flag("out", "New file for the token (mode 0600), instead of printing it.").PlaceHolder("FILE").StringVar(&f.out)
	cmd.Flag("name", "Name of the client, for logs and metrics.").Required().StringVar(&f.name)
	for _, limit := range loadserver.TokenLimits() {
		value := new(string)
		cmd.Flag(limit.Key, limit.Doc).PlaceHolder(limit.Placeholder).StringVar(value)
		f.limits[limit.Key] = value
	}
	cmd.Action(action(func() error { return f.run(os.Stdout, os.Stderr) }))
}

// run writes the token to out, unless --out has a file for it, and what to do with it to say: redirected, only the token is in the file.
func (f *tokenFlags) run(out, say io.Writer) error {
	var words []string
	for _, limit := range loadserver.TokenLimits() {
		if value := f.limits[limit.Key]; value != nil && *value != "" {
			words = append(words, limit.Key+"="+*value)
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
	if f.out != "" {
		if err := writeToken(f.out, text); err != nil {
			return err
		}
	}
	if f.file == "" {
		return f.deliver(out, say, text, fmt.Sprintf(tokenByHand, token))
	}
	if err := loadserver.AppendToken(f.file, token); err != nil {
		if f.out != "" {
			_ = os.Remove(f.out) // no load server accepts it
		}
		return err
	}
	file, err := filepath.Abs(f.file)
	if err != nil {
		file = f.file // as given
	}
	server := fmt.Sprintf(tokenWritten, file)
	if info, err := os.Stat(f.file); err == nil && info.Mode()&0o044 == 0 {
		server += fmt.Sprintf(tokenOwned, file)
	}
	return f.deliver(out, say, text, server)
}

// deliver writes the token and what to do at both ends.
func (f *tokenFlags) deliver(out, say io.Writer, text, server string) error {
	client := tokenPrinted
	if f.out != "" {
		client = fmt.Sprintf(tokenInFile, f.out)
	} else if _, err := fmt.Fprintln(out, text); err != nil {
		return fmt.Errorf("token: print it: %w", err)
	}
	_, err := io.WriteString(say, client+server)
	return err
}

// writeToken creates a file that only its owner may read. An existing file is an error, since it may hold the token of
// another load server.
func writeToken(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--out: %w; it may hold another token, so name a new file", err)
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err = f.WriteString(text + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(file) // the token is incomplete
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

const (
	tokenPrinted = `
This is the token; it is not shown again. On the client, put it into a file that only the
agent's user can read (chmod 600), and set token_file of the load-test probes to that file.
`
	tokenInFile = `The token is in %s, and nowhere else. Move that file to the client over a
confidential channel, keep its mode, and set token_file of the load-test probes to it.
`
	tokenByHand = `On the load server, add this line to the tokens file (tokens_file, chmod 600):

%s
`
	tokenWritten = `The token's hash is in %s,
which must be the load server's tokens_file; the load server needs no further change.
`
	tokenOwned = `Only the owner of this file can read it. For a load server of another user, such as the
package's: chgrp oneway %[1]s && chmod 640 %[1]s
`
)
