// Package logs passes the log of the agent and of its plugins to Telegraf.
//
// Telegraf reads an external plugin's standard error; a line that begins with "E! ", "W! ", "I! " or "D! " has that level there.
package logs

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/influxdata/telegraf"

	"oneway.example/exporter/core/unit"
)

// queued is the number of lines that wait for Telegraf; more are dropped. A Telegraf that does not read must not stop the agent,
// which logs from the goroutines that measure.
const queued = 256

// Logger writes lines for Telegraf. It implements telegraf.Logger. Make one with New.
type Logger struct {
	level telegraf.LogLevel
	lines chan string
	ended chan struct{}

	mu      sync.Mutex // guards the fields below
	closed  bool
	dropped int
}

// New makes a logger of the records of a level and above.
func New(to io.Writer, level telegraf.LogLevel) *Logger {
	l := &Logger{level: level, lines: make(chan string, queued), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		for line := range l.lines {
			_, _ = io.WriteString(to, line) // there is nowhere to report an error
		}
	}()
	return l
}

// Close writes the waiting lines, at most for a limit. Later records are dropped.
func (l *Logger) Close(limit time.Duration) {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.lines)
	}
	l.mu.Unlock()
	select {
	case <-l.ended:
	case <-time.After(limit):
	}
}

func (l *Logger) print(level telegraf.LogLevel, text string) {
	if !l.level.Includes(level) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.dropped > 0 {
		select {
		case l.lines <- "W! " + unit.Counted(l.dropped, "line of the log was", "lines of the log were") + " dropped, since Telegraf did not read the log\n":
			l.dropped = 0
		default:
		}
	}
	select {
	case l.lines <- level.Indicator() + " " + text + "\n":
	default:
		l.dropped++
	}
}

// Level is the level of New.
func (l *Logger) Level() telegraf.LogLevel { return l.level }

// AddAttribute does nothing: a line has no attributes of the logger.
func (*Logger) AddAttribute(string, any) {}

// Errorf is that of telegraf.Logger.
func (l *Logger) Errorf(format string, args ...any) {
	l.print(telegraf.Error, fmt.Sprintf(format, args...))
}

// Error is that of telegraf.Logger.
func (l *Logger) Error(args ...any) { l.print(telegraf.Error, fmt.Sprint(args...)) }

// Warnf is that of telegraf.Logger.
func (l *Logger) Warnf(format string, args ...any) {
	l.print(telegraf.Warn, fmt.Sprintf(format, args...))
}

// Warn is that of telegraf.Logger.
func (l *Logger) Warn(args ...any) { l.print(telegraf.Warn, fmt.Sprint(args...)) }

// Infof is that of telegraf.Logger.
func (l *Logger) Infof(format string, args ...any) {
	l.print(telegraf.Info, fmt.Sprintf(format, args...))
}

// Info is that of telegraf.Logger.
func (l *Logger) Info(args ...any) { l.print(telegraf.Info, fmt.Sprint(args...)) }

// Debugf is that of telegraf.Logger.
func (l *Logger) Debugf(format string, args ...any) {
	l.print(telegraf.Debug, fmt.Sprintf(format, args...))
}

// Debug is that of telegraf.Logger.
func (l *Logger) Debug(args ...any) { l.print(telegraf.Debug, fmt.Sprint(args...)) }

// Tracef is that of telegraf.Logger.
func (l *Logger) Tracef(format string, args ...any) {
	l.print(telegraf.Trace, fmt.Sprintf(format, args...))
}

// Trace is that of telegraf.Logger.
func (l *Logger) Trace(args ...any) { l.print(telegraf.Trace, fmt.Sprint(args...)) }

var _ telegraf.Logger = (*Logger)(nil)
