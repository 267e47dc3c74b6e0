package helper

import (
	"bufio"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxLogged is the number of lines of standard error that are logged in logPeriod, maxLogLine the bytes that are kept of each.
	maxLogged  = 20
	logPeriod  = 10 * time.Second
	maxLogLine = 500
	// errorsPerSecond is the rate in bytes at which standard error is read: a program that floods it waits.
	errorsPerSecond = 1 << 20
)

// readErrors logs the lines of standard error.
func (p *process) readErrors() {
	log := p.options.Log.With("program", p.options.Program)
	reader := bufio.NewReaderSize(p.out[1], maxLogLine)
	logged, suppressed, begin := 0, 0, time.Now()
	defer func() {
		if suppressed > 0 {
			log.Warn("Helper wrote more to its standard error", "suppressed_lines", suppressed)
		}
	}()
	for continued := false; ; {
		text, more, err := reader.ReadLine()
		if err != nil {
			return
		}
		if time.Since(begin) > logPeriod {
			logged, begin = 0, time.Now()
		}
		if logged < maxLogged && !continued {
			logged++
			log.Warn("Helper wrote to its standard error", "text", strings.ToValidUTF8(string(text), string(utf8.RuneError)))
		} else {
			if !continued {
				suppressed++
			}
			if !p.pause(time.Duration(len(text)+1) * time.Second / errorsPerSecond) {
				return
			}
		}
		continued = more
	}
}

// pause waits, and reports false if the program has been ended meanwhile.
func (p *process) pause(d time.Duration) bool {
	select {
	case <-p.killed:
		return false
	case <-time.After(d):
		return true
	}
}
