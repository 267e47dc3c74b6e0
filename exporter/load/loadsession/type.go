package loadsession

import (
	"bytes"
	"errors"
	"fmt"

	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/target"
)

// Type makes probers of a kind of load test with a load server; O are its own options.
type Type[O any] = loadtest.Type[Options, O]

// NewType returns the type of this name. newKind checks the options of a path and makes its Kind.
func NewType[O any, S Session, K Kind[S]](name string, defaults func() O, newKind func(shared Options, own O) (K, error)) Type[O] {
	var kind K
	_, alone := any(kind).(Undisturbed)
	t := Type[O]{
		TypeName: name, LightPackets: !alone, Shared: DefaultOptions, Defaults: defaults, Run: func(o *Options) *loadtest.Options { return &o.Options },
		Make: func(to probe.Target, shared Options, own O) (loadtest.Test, error) {
			k, err := newKind(shared, own)
			if err != nil {
				_, _, wrong := shared.checked(to)
				return nil, errors.Join(err, wrong)
			}
			return NewTest[S](to, shared, k)
		},
		RemoteKey:     serverKey,
		SetDirections: func(o *Options, names []string) { o.Directions = names },
		Required: []probe.Requirement{{
			Key: "token_file", Instead: "cert_file", Hint: `"oneway token new" on the load server's host makes one for this host`,
		}},
	}
	if alone {
		t.Unused = []string{workingKey}
	}
	return t
}

// serverKey is the key of Options.LoadServer.
const serverKey = "load_server"

// checked returns the load server's address, and all errors of the options.
func (o *Options) checked(target probe.Target) (host string, port uint16, err error) {
	host, port, err = o.address(target)
	key := probe.PeerKey
	if o.LoadServer != "" {
		key, err = serverKey, nil // the check of the option has it
	}
	return host, port, errors.Join(o.check(), err, o.CheckPeer(key, host))
}

// address returns the load server's address: as configured, or the path's peer with the default
// port of load servers.
func (o *Options) address(to probe.Target) (host string, port uint16, err error) {
	if o.LoadServer != "" {
		host, port, err = target.Host(o.LoadServer, loadcontrol.DefaultPort)
		if wrong, ok := errors.AsType[*option.Error](err); ok {
			return "", 0, &option.Error{Key: serverKey, Problem: wrong.Problem}
		}
		return host, port, nil
	}
	host, _, err = target.Host(to.Peer, loadcontrol.DefaultPort) // the port of the peer is for another service
	return host, loadcontrol.DefaultPort, err
}

// readToken returns the first line of a file that is neither empty nor a comment. An empty name
// returns no token; a client certificate may replace it.
func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	content, err := keyfile.Read(file)
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			if err := loadcontrol.CheckToken(string(line)); err != nil {
				return "", fmt.Errorf("%s: %w; \"oneway token new\" makes one", file, err)
			}
			return string(line), nil
		}
	}
	return "", fmt.Errorf("%s holds no token; \"oneway token new\" makes one", file)
}
