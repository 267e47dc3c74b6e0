package helper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/strictjson"
	"oneway.example/exporter/core/unit"
)

// Options configure a Helper. Program is required.
type Options struct {
	// Program is the absolute path of the program, Args its arguments.
	Program string
	Args    []string
	// Environment has further variables, such as "HOME=/var/lib/oneway"; the program has no others than these, PATH and LANG.
	Environment []string
	// Memory limits the program's memory in bytes. In a Cgroup it is the sum of the program and its children, else the data of each
	// process; 0: no limit.
	Memory int64
	// Timeout limits the time from a request to its reply; 0: one minute.
	Timeout time.Duration
	// StartTimeout limits the time from the start of the program to its Hello; 0: 10 seconds.
	StartTimeout time.Duration
	// Cgroup is the directory of a delegated control group of version 2, in which the program gets a group of its own (see
	// Delegated); empty: the program is in the group of the agent.
	Cgroup string
	// Log receives what the program writes to its standard error, at a limited rate; nil: it is discarded.
	Log *slog.Logger

	firstPause, longestPause time.Duration // set by tests only
}

// The pause after a failure doubles with each further one.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Helper is the agent's end of a program. Its methods are safe for concurrent use. Make one with New, and Close it.
type Helper struct {
	options Options
	turn    chan struct{} // holds a value while nobody uses the fields below

	process *process // nil: it does not run
	last    uint64   // number of the last request
	pause   time.Duration
	retry   time.Time // no start before
	failed  error     // the last failure
	closed  bool
}

// New checks the options. It starts nothing.
func New(o Options) (*Helper, error) {
	switch {
	case !filepath.IsAbs(o.Program):
		return nil, option.Errorf("program", "is %q; it must be an absolute path", o.Program)
	case o.Memory < 0:
		return nil, option.Errorf("memory", "is %d; it must not be negative", o.Memory)
	}
	o.Timeout, o.StartTimeout = cmp.Or(o.Timeout, time.Minute), cmp.Or(o.StartTimeout, 10*time.Second)
	o.firstPause, o.longestPause = cmp.Or(o.firstPause, firstPause), cmp.Or(o.longestPause, longestPause)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Helper{options: o, turn: make(chan struct{}, 1)}
	h.turn <- struct{}{}
	return h, nil
}

// Call sends a request and decodes its result into a pointer; nil: the result is ignored. It starts the program if it does not run.
// One request runs at a time; others wait. A request that has no reply when ctx ends, or within the time limit, ends the program, which
// may take some seconds more. The error is an *Error.
func (h *Helper) Call(ctx context.Context, method string, params, into any) error {
	ctx, cancel := context.WithTimeout(ctx, h.options.Timeout)
	defer cancel()
	select {
	case <-h.turn:
		defer func() { h.turn <- struct{}{} }()
	case <-ctx.Done():
		return h.options.interrupted(ctx, "an earlier request used the time")
	}
	text, err := h.encode(method, params)
	if err != nil {
		return err
	}
	if err := h.running(ctx); err != nil {
		return err
	}
	reply, err := h.process.exchange(ctx, text)
	if err == nil && (reply.Hello != nil || reply.ID != h.last) {
		err = h.fault(Unexpected, "it sent a message that nothing asked for", nil)
	}
	if err == nil && reply.Error != "" {
		h.pause = 0
		return h.fault(Refused, shortened(reply.Error), nil)
	}
	if err == nil && into != nil {
		if wrong := json.Unmarshal(reply.Result, into); wrong != nil {
			err = h.fault(Malformed, "its result of "+method+" cannot be decoded: "+strictjson.Explain(wrong).Error(), wrong)
		}
	}
	if err != nil {
		return h.end(ctx, err)
	}
	h.pause = 0
	return nil
}

// Close ends the program with its children. Later requests fail.
func (h *Helper) Close() {
	<-h.turn
	defer func() { h.turn <- struct{}{} }()
	h.closed = true
	if h.process != nil {
		h.process.end()
		h.process = nil
	}
}

func (h *Helper) encode(method string, params any) (text []byte, err error) {
	h.last++
	r := request{ID: h.last, Method: method}
	if params != nil {
		if r.Params, err = json.Marshal(params); err != nil {
			return nil, h.fault(Malformed, "the parameters of "+method+" cannot be encoded: "+err.Error(), err)
		}
	}
	text, err = json.Marshal(r)
	if text = append(text, '\n'); err == nil && len(text) > MaxLine {
		return nil, h.fault(TooLong, fmt.Sprintf("the request %s has %d bytes; the limit is %d", method, len(text), MaxLine), nil)
	}
	return text, err
}

// running starts the program unless it runs.
func (h *Helper) running(ctx context.Context) error {
	if h.process != nil && h.process.hasEnded() {
		_ = h.end(ctx, h.fault(Crashed, "", nil)) // since the last request; the next start waits
	}
	switch wait := time.Until(h.retry); {
	case h.closed:
		return h.fault(NotStarted, "it is closed", nil)
	case h.process != nil:
		return nil
	case wait > 0:
		return h.fault(Waiting, fmt.Sprintf("it is started again in %s, after a failure: %v", unit.Duration(wait), h.failed), h.failed)
	}
	var err error
	if h.process, err = start(&h.options); err != nil {
		return h.end(ctx, h.fault(NotStarted, "it cannot be started: "+err.Error(), err))
	}
	waiting, cancel := context.WithTimeout(ctx, h.options.StartTimeout)
	defer cancel()
	m, err := h.process.exchange(waiting, nil)
	switch {
	case err != nil:
	case m.Hello == nil:
		err = h.fault(Unexpected, "its first message is no hello", nil)
	case m.Hello.Protocol != Protocol:
		err = h.fault(WrongVersion, fmt.Sprintf("%s %s speaks version %d of the protocol, this agent version %d; install the release of the agent",
			shortened(m.Hello.Name), shortened(m.Hello.Version), m.Hello.Protocol, Protocol), nil)
	}
	if err != nil {
		return h.end(ctx, err)
	}
	h.options.Log.Info("Helper started", "program", h.options.Program, "version", shortened(m.Hello.Version))
	return nil
}

// end ends the program after an error, and returns the error.
func (h *Helper) end(ctx context.Context, err error) error {
	if h.process != nil {
		if wrong, ok := errors.AsType[*Error](err); ok {
			err = h.process.ending(wrong)
		}
		h.process.end()
		h.process = nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return err // the program is not at fault
	}
	h.pause = min(max(2*h.pause, h.options.firstPause), h.options.longestPause)
	h.retry, h.failed = time.Now().Add(h.pause), err
	return err
}

func (h *Helper) fault(r Reason, text string, cause error) *Error {
	return h.options.fault(r, text, cause)
}

func (o *Options) fault(r Reason, text string, cause error) *Error {
	return &Error{Program: o.Program, Reason: r, Text: text, Cause: cause}
}

// interrupted is the error of a request at the end of ctx: Canceled, or Timeout with the text late.
func (o *Options) interrupted(ctx context.Context, late string) *Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return o.fault(Canceled, "the request was canceled", ctx.Err())
	}
	return o.fault(Timeout, late, ctx.Err())
}

// shortened is a text of the program for a message: one line of at most 300 bytes and an ellipsis.
func shortened(text string) string {
	const most = 300
	end := ""
	if len(text) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text, end = text[:cut], "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError))) + end
}
