//go:build !slim

package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/serve/promapi"
)

// prometheusFlags select a Prometheus server and its credentials.
type prometheusFlags struct{ url, basic, bearer string }

func (f *prometheusFlags) register(cmd *kingpin.CmdClause, address string) {
	cmd.Flag("prometheus.url", "Address of Prometheus, or of a compatible server, with its path prefix.").Default(address).StringVar(&f.url)
	cmd.Flag("prometheus.basic-auth-file", "File with user:password for Prometheus.").PlaceHolder("FILE").StringVar(&f.basic)
	cmd.Flag("prometheus.bearer-file", "File with a bearer token for Prometheus.").PlaceHolder("FILE").StringVar(&f.bearer)
}

// connect is the server. Nothing is sent yet.
func (f *prometheusFlags) connect() (*promapi.Server, error) {
	if at, err := url.Parse(f.url); err != nil || at.Host == "" {
		return nil, usageError{fmt.Errorf("--prometheus.url is %q; it must begin with http:// or https://, such as http://127.0.0.1:9090", f.url)}
	}
	authorization, err := f.authorization()
	return &promapi.Server{URL: f.url, Authorization: authorization}, err
}

// authorization is the header of the requests.
func (f *prometheusFlags) authorization() (string, error) {
	if f.basic != "" && f.bearer != "" {
		return "", usageError{errors.New("--prometheus.basic-auth-file and --prometheus.bearer-file exclude each other")}
	}
	for _, c := range []struct {
		flag, file string
		header     func([]byte) string
	}{
		{"basic-auth", f.basic, func(text []byte) string { return "Basic " + base64.StdEncoding.EncodeToString(text) }},
		{"bearer", f.bearer, func(text []byte) string { return "Bearer " + string(text) }},
	} {
		if c.file == "" {
			continue
		}
		text, err := keyfile.Read(c.file)
		if err != nil {
			return "", fmt.Errorf("--prometheus.%s-file: %w", c.flag, err)
		}
		return c.header([]byte(strings.TrimSpace(string(text)))), nil
	}
	return "", nil
}
