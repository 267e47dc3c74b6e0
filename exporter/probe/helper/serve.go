package helper

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Handler handles a request of a method.
type Handler func(ctx context.Context, params json.RawMessage) (result any, err error)

// Serve is the main function of a helper program: it sends a Hello with the program's name and version, and handles requests by their
// method, one at a time. It does not return: when the agent ends, or closes the pipe, it ends the program with its process group,
// children included. Nothing else may write to standard output.
func Serve(name, version string, handlers map[string]Handler) {
	requests := make(chan request)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM) // the death signal of the agent
	go func() {
		<-terminated
		endGroup()
	}()
	go func() {
		if err := receive(os.Stdin, requests); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		endGroup()
	}()
	send(message{Hello: &Hello{Protocol: Protocol, Name: name, Version: version}})
	for r := range requests {
		send(handle(handlers, r))
	}
}

// receive passes the requests of the agent, until it closes the pipe.
func receive(from io.Reader, requests chan<- request) error {
	reader := bufio.NewReaderSize(from, 64<<10)
	for {
		text, why := readLine(reader)
		if why == Crashed {
			return nil // the end of the pipe
		}
		var r request
		if err := json.Unmarshal(text, &r); why != "" || err != nil {
			return fmt.Errorf("helper: a request cannot be read: %s: %w", why, err)
		}
		requests <- r
	}
}

// handle is the reply to a request.
func handle(handlers map[string]Handler, r request) message {
	m := message{ID: r.ID}
	handler := handlers[r.Method]
	if handler == nil {
		m.Error = fmt.Sprintf("the method %q is unknown", r.Method)
		return m
	}
	result, err := handler(context.Background(), r.Params)
	if err == nil {
		m.Result, err = json.Marshal(result)
	}
	if err != nil {
		m.Error = cmp.Or(err.Error(), "it failed without a reason")
	}
	return m
}

// send sends a message. Without an agent the program ends.
func send(m message) {
	text, err := encoded(m)
	if err == nil {
		_, err = os.Stdout.Write(append(text, '\n'))
	}
	if err != nil {
		endGroup()
	}
}

// encoded is a message without its newline. An error replaces a reply that is longer than MaxLine.
func encoded(m message) ([]byte, error) {
	text, err := json.Marshal(m)
	if len(text) < MaxLine {
		return text, err
	}
	return json.Marshal(message{ID: m.ID, Error: fmt.Sprintf("the reply has %d bytes; it must have at most %d", len(text), MaxLine-1)})
}

// endGroup ends this process with all others of its group. Helper makes it the leader of one.
func endGroup() {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL) // includes this process
	}
	os.Exit(1)
}
