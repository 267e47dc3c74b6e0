// Package helper runs a part of a probe in a program of its own, so that what it needs, such as a browser, is not in the agent.
//
// The agent starts the program, sends it requests and receives replies over two pipes: JSON, one message a line, of at most MaxLine
// bytes. The program begins with a Hello. It handles one request at a time:
//
//	program: {"hello":{"protocol":1,"name":"web","version":"0.1.0"}}
//	agent:   {"id":1,"method":"load","params":{"url":"https://example.net/"}}
//	program: {"id":1,"result":{"load_seconds":0.8}}
//	program: {"id":2,"error":"the URL has no host"}
//
// A Helper is the agent's end: it starts the program at the first request, limits its time and memory, and ends it with all of its
// children. Serve is the program's end. exporter/doc/decisions/0018-helper-processes.md has the reasons.
package helper

import (
	"encoding/json"
	"fmt"
)

// Protocol is the version of the protocol. An agent and its helpers are of the same release, so no other one is accepted.
const Protocol = 1

// MaxLine is the largest message in bytes, with its newline.
const MaxLine = 1 << 20

// Hello is the first message of a program.
type Hello struct {
	// Protocol is the version of the protocol.
	Protocol int `json:"protocol"`
	// Name and Version are of the program.
	Name    string `json:"name"`
	Version string `json:"version"`
}

// request is a message of the agent.
type request struct {
	ID     uint64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// message is a message of the program: its hello or a reply.
type message struct {
	Hello  *Hello          `json:"hello,omitempty"`
	ID     uint64          `json:"id,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	// Error is why the request failed; empty: it succeeded.
	Error string `json:"error,omitempty"`
}

// Reason is why a request has no result.
type Reason string

// The reasons.
const (
	// NotStarted: the program cannot be started.
	NotStarted Reason = "not_started"
	// WrongVersion: the program speaks another version of the protocol.
	WrongVersion Reason = "wrong_version"
	// Crashed: the program ended by itself.
	Crashed Reason = "crashed"
	// OutOfMemory: the program ended at its limit of memory.
	OutOfMemory Reason = "out_of_memory"
	// Timeout: the program did not reply in time.
	Timeout Reason = "timeout"
	// Canceled: the caller did not wait for the reply.
	Canceled Reason = "canceled"
	// Malformed: a line of the program is not a message.
	Malformed Reason = "malformed"
	// TooLong: a message is longer than MaxLine.
	TooLong Reason = "too_long"
	// Unexpected: the program sent a message that nothing asked for.
	Unexpected Reason = "unexpected"
	// Refused: the program replied with an error; it keeps running.
	Refused Reason = "refused"
	// Waiting: the program has failed, and is not started again yet.
	Waiting Reason = "waiting"
)

// Error is why a request has no result. After all reasons but Refused, Waiting and a TooLong request the program has ended.
type Error struct {
	// Program is the path of the program.
	Program string
	Reason  Reason
	// Text is the reason in words.
	Text string
	// Cause is the error of the system or the context; nil: there is none.
	Cause error
}

// Error has the program, and the reason in words.
func (e *Error) Error() string { return fmt.Sprintf("helper: %s: %s", e.Program, e.Text) }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }
