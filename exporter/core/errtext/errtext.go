// Package errtext makes the texts of errors for people, who do not know the packages of this program.
package errtext

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// packages begin errors with their names, of this program and of Go. A name that a configuration has too, such as reflector, names the
// place for people, and stays.
func packages() []string {
	return []string{
		"backtoback", "calendar", "calibration", "collect", "document", "helper", "httpd", "incident", "keyfile", "linklease", "loadcontrol",
		"loadserver", "loadsession", "loadtest", "message", "option", "phc", "point", "promsink", "quota", "relisten", "rules", "saturation",
		"sched", "sizesweep", "slareport", "source", "spool", "stamp", "stream", "target", "tcp", "tcpshort", "tcpsocket", "tcpstamp",
		"tcpsweep", "train", "tstamp", "voice",
		"json", "tls", "x509", "yaml",
	}
}

// Kept are the packages whose names are sections of the configuration, keys of a section, or other programs.
func Kept() []string {
	return []string{"agent", "chrony", "clock", "config", "gpsd", "link", "pps", "reflector", "report"}
}

// Drops reports whether the name of a package is left out.
func Drops(name string) bool { return slices.Contains(packages(), name) }

// beginnings matches the names of packages that begin parts of a text.
var beginnings = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|: |; |\(|\n)(?:(?:` + strings.Join(packages(), "|") + `): )+`)
})

// Words is the text of an error without the names of packages that begin its parts.
func Words(err error) string { return beginnings().ReplaceAllString(err.Error(), "$1") }

// Handler passes records on, with the texts of their errors.
type Handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	to := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		to.AddAttrs(worded(a))
		return true
	})
	return h.Handler.Handle(ctx, to)
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	all := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		all[i] = worded(a)
	}
	return Handler{h.Handler.WithAttrs(all)}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler { return Handler{h.Handler.WithGroup(name)} }

func worded(a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(Words(err))
	}
	return a
}
