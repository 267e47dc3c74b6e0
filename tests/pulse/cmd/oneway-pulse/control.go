package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"oneway.example/tests/pulse"
	"oneway.example/tests/receiver"
)

// network is that of a control address.
func network(address string) string {
	if strings.Contains(address, "/") {
		return "unix"
	}
	return "tcp"
}

// listen serves the control until the listener is closed.
func (h *host) listen(address string) (net.Listener, error) {
	l, err := net.Listen(network(address), address)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /set", func(w http.ResponseWriter, r *http.Request) {
		if err := h.set(r.URL.Query()); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(h.state()) // the client has gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until it is closed
	return l, nil
}

// set changes settings, all or none.
func (h *host) set(values url.Values) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.settings
	f := flag.NewFlagSet("set", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	next.flags(f)
	for name := range values {
		if err := f.Set(name, values.Get(name)); err != nil {
			return fmt.Errorf("set %s=%s: %w", name, values.Get(name), err)
		}
	}
	if h.device != nil {
		if err := h.device.Set(next.pulse); err != nil {
			return err
		}
	}
	if h.receiver != nil {
		h.receiver.Set(next.receiver)
	}
	h.settings = next
	return nil
}

// state is what GET /state returns.
type state struct {
	Pulse    *pulse.State       `json:"pulse,omitempty"`
	Receiver *receiver.Settings `json:"receiver,omitempty"`
}

func (h *host) state() (s state) {
	if h.device != nil {
		p := h.device.State()
		s.Pulse = &p
	}
	if h.receiver != nil {
		r := h.receiver.State()
		s.Receiver = &r
	}
	return s
}

// send is the client of set.
func send(address, query string) error {
	if address == "" {
		return errors.New("-set needs -control")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("-set %s: %w", query, err)
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network(address), address)
	}}}
	r, err := client.Post("http://control/set?"+values.Encode(), "", nil)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		return fmt.Errorf("control: %s: %s", r.Status, strings.TrimSpace(string(text)))
	}
	_, err = io.Copy(os.Stdout, r.Body)
	return err
}
